// Package systemd takes sockets from systemd, and notifies it of the state of the process: ready, alive, stopping.
// Without systemd it does nothing.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// Listener returns the socket that systemd has opened for the process (sd_listen_fds(3)), or nil.
func Listener() (net.Listener, error) {
	all, err := activation.Listeners()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if _, tcp := all[0].Addr().(*net.TCPAddr); tcp && len(all) == 1 {
		return all[0], nil
	}
	for _, l := range all {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return nil, errors.Join(
		fmt.Errorf("systemd passes %d sockets, or one that is not TCP: give the socket unit one ListenStream= with a port",
			len(all)), err)
}

// Ready notifies systemd that the process is ready.
func Ready() { tell(daemon.SdNotifyReady) }

// Reloading notifies systemd that the process reloads its settings. [Ready] ends it.
func Reloading() { tell(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec()) }

// Stopping notifies systemd that the process ends.
func Stopping() { tell(daemon.SdNotifyStopping) }

// Alive notifies systemd that the process is alive. It must be called every [Beat].
func Alive() { tell(daemon.SdNotifyWatchdog) }

// Status sends a short description of the state of the process.
func Status(text string) { tell("STATUS=" + text) }

// Beat returns the interval at which systemd expects a notification that the process is alive, with a margin, or 0 if
// it expects none.
func Beat() time.Duration {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return 0
	}
	return limit / 3
}

// KeepAlive notifies systemd that the process is alive, as long as healthy returns no error, until ctx ends.
func KeepAlive(ctx context.Context, healthy func(context.Context) error) {
	beat := Beat()
	if beat <= 0 {
		return
	}
	ticks := time.NewTicker(beat)
	defer ticks.Stop()
	for {
		if healthy(ctx) == nil {
			Alive()
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

func tell(state string) { _, _ = daemon.SdNotify(false, state) }
