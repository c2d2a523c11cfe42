package followtest

import (
	"context"
	"net/http"
	"testing"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/docs"
)

// phases are the phases of a follower before its server loses something.
var phases = map[string]func(f *follower){
	"in all":          func(f *follower) { f.calm() },
	"but for records": func(f *follower) { f.meets(f.isRecord, 0) },
	"half of it":      func(f *follower) { f.meets(f.isRecord, 4) },
	"with one lacking, and a round that failed": func(f *follower) {
		f.unlucky()
		_, _ = f.place.Round(context.Background(), f.name, How{Parallel: 1, Tries: 1})
		f.meets(func(r *http.Request) bool { return !f.isRecord(r) }, 0)
	},
}

func (f *follower) isRecord(r *http.Request) bool { return f.source.Record(r) != "" }

// meets does a round in which, after some answers of a kind, the server requests a pause.
func (f *follower) meets(kind func(*http.Request) bool, answers int) {
	f.source.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !kind(r) && !packages(r) {
			return false
		}
		if answers--; answers >= 0 {
			return false
		}
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	_, _ = f.place.Round(context.Background(), f.name, How{Parallel: 1, Tries: 1})
	f.source.BreakWith(nil)
}

// unlucky makes the first requested record unavailable.
func (f *follower) unlucky() {
	path := ""
	f.source.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if f.isRecord(r) && path == "" {
			path = r.URL.Path
		}
		if r.URL.Path != path && !packages(r) {
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		return true
	})
}

// turns are changes of a server. saved is a copy of it before its last publication.
var turns = map[string]func(p *Publisher, saved string){
	"restored":                    func(p *Publisher, saved string) { p.Restore(saved) },
	"restored, and has published": func(p *Publisher, saved string) { p.Restore(saved); p.publish("after") },
	"rebuilt, and has published":  func(p *Publisher, _ string) { p.Rebuild(); p.begin(); p.publish("after") },
}

// Turns restores or rebuilds servers in each phase of a follower of each row of a sink. One round then brings it in
// step, and the next has nothing to do. The short form has all turns only for the first row.
func Turns(t *testing.T, sink Sink) {
	testenv.SkipUnderRace(t)
	for at, row := range sink.Rows {
		if row.Model {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			f, p := following(t, &sink, row)
			for turn, become := range turns {
				if (at > 0 && turn != "restored" || at > 1 && !testenv.All()) && !testenv.Long() {
					continue
				}
				for phase, come := range phases {
					for start, first := range map[string]func(){"in step": f.settle, "new": func() {}} {
						if start == "new" && phase != "half of it" {
							continue
						}
						t.Run(turn+"/"+phase+"/"+start, func(t *testing.T) {
							f.on(t)
							f.place.Leave(f.name)
							f.place.Follow(f.name, p, f.kind)
							p.publish("before " + turn + phase + start)
							first()
							p.publish("kept")
							saved := p.Backup()
							p.PutAs(p.Name, docs.Map(append(docs.Topics(4, "lost"), docs.Topics(9, "kept")[4:]...)...))
							come(f)
							become(p, saved)
							f.settle()
						})
					}
				}
			}
		})
	}
}
