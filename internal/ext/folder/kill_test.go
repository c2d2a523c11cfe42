package folder_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/tmshare/tmshare/internal/ext/atompmh"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/destination"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/follow/followtest"
	"github.com/tmshare/tmshare/internal/testkit/anyhost"
	"github.com/tmshare/tmshare/internal/testkit/kill"
)

func TestMain(m *testing.M) {
	kill.Main(m, kill.Tasks{
		"harvest": func(args []string) error { // in the formats after the folder
			f := fetch.Fetcher{}.WithDefaults()
			return killedRound(args[1], args[0], &atompmh.Source{Fetcher: f}, Options{ConfirmAfter: followtest.ConfirmAfter, Fetcher: f, Formats: args[2:]})
		},
		"mirror": func(args []string) error { // all hosts are at the third argument, if there is one
			f := fetch.Fetcher{}
			if len(args) > 2 {
				f.HTTP = anyhost.ClientOf(args[2])
			}
			own := f.WithDefaults()
			return killedRound(args[1], args[0], &destination.Source{Fetcher: own, Temp: args[1]}, Options{ConfirmAfter: followtest.ConfirmAfter, Fetcher: own, Mirror: true})
		},
	})
}

// killedRound does the work of a round, and saves much more often than other rounds.
func killedRound(dir, url string, s follow.Source, o Options) error {
	f, err := Open(dir, o)
	if err != nil {
		return err
	}
	f.SaveEvery(time.Nanosecond)
	f.LoseAtFailure() // the machine does not fail
	_, err = patiently(&f.Options, func() (*Round, error) { return f.Harvest(context.Background(), s, url) })
	return errors.Join(err, f.Close())
}
