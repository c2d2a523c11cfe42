package server

import (
	"encoding/hex"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/xmlpatch"
)

// fragmentPatch answers with the patch that makes a fragment, in a form, of the topic's fragment
// before (Z39.99 §14.4, Patch Content). It never changes, as fragments do not.
func (s *Server) fragmentPatch(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		e, err := s.findEntry(v, r)
		if err != nil {
			return err
		}
		version, err := negotiateXTM(r, mux.Vars(r)["ext"], store.Forms[:])
		if err != nil {
			return err
		}
		digest := e.PatchOf(version)
		if digest == nil {
			return problem(http.StatusNotFound, "no patch leads to this fragment; it is at %s", s.fragmentURL(&v.Collection, e.Seq))
		}
		if e.Prior <= v.Horizon {
			return s.pruned(&v.Collection, "the fragment that this patch leads from")
		}
		exchangeOf(r).settled = s.sinceThen(e.Updated)
		h := w.Header()
		h.Set("Vary", "Accept-Encoding")
		h.Set("Content-Type", xmlpatch.MediaType)
		return s.writeBytes(w, r, hex.EncodeToString(digest.SHA256[:16]), cacheForEver, func() ([]byte, error) { return v.Patch(e, version) })
	})
}
