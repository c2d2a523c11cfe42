package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// component is one of a bill of materials (CycloneDX 1.6, "components").
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"` // the package URL, by which advisories name modules
}

func componentOf(kind, path, version string) component {
	url := fmt.Sprintf("pkg:golang/%s@%s", path, version)
	return component{kind, url, path, version, url}
}

// bom writes the bill of materials of the programs, as CycloneDX 1.6 in JSON: the modules that are in them.
func (r *release) bom(ctx context.Context, w io.Writer) error {
	modules, err := r.modules(ctx)
	if err != nil {
		return err
	}
	var bill struct {
		Format   string `json:"bomFormat"`
		Spec     string `json:"specVersion"`
		Version  int    `json:"version"`
		Metadata struct {
			Time      string    `json:"timestamp"`
			Component component `json:"component"`
		} `json:"metadata"`
		Components []component `json:"components"`
	}
	bill.Format, bill.Spec, bill.Version = "CycloneDX", "1.6", 1
	bill.Metadata.Time = r.time.Format("2006-01-02T15:04:05Z")
	bill.Metadata.Component = componentOf("application", "github.com/tmshare/tmshare", "v"+r.version)
	for _, m := range modules {
		bill.Components = append(bill.Components, componentOf("library", m.path, m.version))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(&bill)
}
