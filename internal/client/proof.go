package client

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store"
)

// stated returns the state digest that the source states: the signed one, or else that of the mark.
func (u *fragments) stated() string { return cmp.Or(signedDigest(u.s), u.mark.Digest) }

// asOf returns the time of a proof: that of the source's statement, if it states one.
func (u *fragments) asOf() time.Time {
	if at := u.Memory().InStep; !at.IsZero() {
		return at
	}
	return u.Now().UTC()
}

// prove compares the digest of the held records with the stated one, without a request. It returns nil if none is
// stated.
func (u *fragments) prove(ctx context.Context) (*store.Proof, error) {
	if u.links().Exchanged() {
		return &store.Proof{At: u.asOf(),
			Reason: fmt.Sprintf(
				"the copy has what %s carries, which was asked for, and no more: scopes that are no language, variants and "+
					"reifiers are left out, and each resource has a blank node of its own where several led to one", u.format)}, nil
	}
	text := u.stated()
	if text == "" {
		return nil, nil
	}
	p := &store.Proof{At: u.asOf()}
	stated, ok := statedigest.Parse(text)
	switch {
	case !ok:
		p.Reason = fmt.Sprintf("the source states a digest that this version does not know (%.20q)", text)
		return p, nil
	case text != u.mark.Digest && !u.source.Until.IsZero():
		p.Reason = "the state is an earlier one than that of the checkpoint"
		return p, nil
	case u.format == formats.XTM10:
		p.Reason = "the digest covers more than XTM 1.0 carries, which was asked for"
		return p, nil
	}
	root, err := u.Store.DigestNode(ctx, u.s.Name, nil)
	if err != nil {
		return nil, err
	}
	held := root.Digest()
	if p.Equal = held == stated; p.Equal {
		return p, nil
	}
	quarantine, err := u.Store.Quarantine(ctx, u.s.Name)
	switch {
	case err != nil:
		return nil, err
	case len(quarantine) > 0:
		p.Reason = "topics are in quarantine"
	default:
		p.Differs = true
		p.Reason = fmt.Sprintf("what is held differs from what the source states (%s, not %s): \"replace %s\" starts afresh",
			held, stated, u.s.Name)
	}
	return p, nil
}
