package extension

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/fragment/losses"
)

// Doubts holds the options to confirm losses in readings.
type Doubts struct {
	ConfirmAfter time.Duration
	MaxDelete    losses.Limit
	Confirm      bool // confirm the doubt of the last round
}

// AddFlags adds the flags of commands that keep things of a kind.
func (d *Doubts) AddFlags(fl *pflag.FlagSet, things string) {
	fl.DurationVar(&d.ConfirmAfter, "confirm-after", 10*time.Minute,
		"`time` between the first and the last reading that confirm a loss")
	fl.TextVar(&d.MaxDelete, "max-delete", losses.Limit{}, "let confirmed losses take away at most this number of "+things+
		": `N`, N% or all (default: half, and any number of fewer than 20)")
}

// AddConfirm adds the flag by which a person confirms.
func (d *Doubts) AddConfirm(fl *pflag.FlagSet) {
	fl.BoolVar(&d.Confirm, "confirm", false, "what the last round was in doubt about is right")
}

// DoubtHelp returns the explanation of doubts for the help of a command that holds things of a kind.
func DoubtHelp(things, readings string) string {
	return `No single reading takes ` + things + ` away: a cache, or a server that was restored, may have
answered. A round that lacks some, or shows an older state, is in doubt: it keeps what is
there, and says why. The next right reading ends the doubt.
` + readings + `
the first and the last --confirm-after apart. Where the state is an old one, that takes up to a day.
--confirm confirms what the last round has shown. Where confirmed losses are more
than --max-delete allows, they are held back.`
}
