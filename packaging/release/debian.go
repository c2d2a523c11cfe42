package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// debian makes a Debian package: the programs, their units, pages of the manual and completions.
func (r *release) debian(ctx context.Context, t target, files []file) error {
	root := filepath.Join(r.scratch, "debian-"+t.arch)
	var size int64
	put := func(to, from string, mode os.FileMode) error {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		size += int64(len(content))
		to = filepath.Join(root, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, mode); err != nil {
			return err
		}
		return os.Chmod(to, mode) // for any umask of the builder
	}
	for _, f := range files {
		if to := inPackage(f.name); to != "" {
			if err := put(to, f.from, os.FileMode(f.mode)); err != nil {
				return err
			}
		}
	}
	packaging := filepath.Join(r.source, "packaging")
	for to, from := range map[string]string{
		"usr/lib/systemd/system/tmshare-server.service": "systemd/tmshare-server.service",
		"usr/lib/systemd/system/tmshare-server.socket":  "systemd/tmshare-server.socket",
		"usr/lib/systemd/system/tmshare-client.service": "systemd/tmshare-client.service",
		"usr/share/doc/tmshare/prometheus/alerts.yml":   "prometheus/alerts.yml",
		"usr/share/doc/tmshare/grafana/tmshare.json":    "grafana/tmshare.json",
		"usr/share/doc/tmshare/nginx/tmshare.conf":      "nginx/tmshare.conf",
		"usr/share/doc/tmshare/caddy/Caddyfile":         "caddy/Caddyfile",
		"usr/share/doc/tmshare/tmshare-server.yaml":     "config/tmshare-server.yaml",
		"usr/share/doc/tmshare/tmshare-client.yaml":     "config/tmshare-client.yaml",
		"etc/default/tmshare-server":                    "debian/default-server",
		"etc/default/tmshare-client":                    "debian/default-client",
	} {
		if err := put(to, filepath.Join(packaging, from), 0o644); err != nil {
			return err
		}
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if err := put("DEBIAN/"+script, filepath.Join(packaging, "debian", script), 0o755); err != nil {
			return err
		}
	}
	if err := put("DEBIAN/conffiles", filepath.Join(packaging, "debian", "conffiles"), 0o644); err != nil {
		return err
	}
	control, err := os.ReadFile(filepath.Join(packaging, "debian", "control"))
	if err != nil {
		return err
	}
	// A version such as 0.2.0-rc.1 is before 0.2.0, which Debian writes with a tilde.
	version := strings.Replace(r.version, "-", "~", 1)
	text := strings.NewReplacer("VERSION", version, "ARCHITECTURE", t.arch, "SIZE",
		fmt.Sprint(size/1024)).Replace(string(control))
	if err := os.WriteFile(filepath.Join(root, "DEBIAN", "control"), []byte(text), 0o644); err != nil {
		return err
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o755)
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("tmshare_%s_%s.deb", version, t.arch)
	compression := "-Zxz"
	if r.unpacked {
		compression = "-Znone"
	}
	c := r.command(ctx, "dpkg-deb", "--root-owner-group", compression, "--build", root, filepath.Join(r.out, name))
	// One thread, because more of them divide the data in another way.
	c.Env = append(os.Environ(), fmt.Sprint("SOURCE_DATE_EPOCH=", r.time.Unix()), "DPKG_DEB_THREADS_MAX=1")
	return ran(c)
}

// inPackage returns where a file of an archive is in a Debian package; "": nowhere.
func inPackage(name string) string {
	dir, base := filepath.Split(name)
	switch {
	case dir == "man/":
		return "usr/share/man/man1/" + base
	case dir == "completions/":
		program, shell, _ := strings.Cut(base, ".")
		return map[string]string{
			"bash": "usr/share/bash-completion/completions/" + program,
			"zsh":  "usr/share/zsh/vendor-completions/_" + program,
			"fish": "usr/share/fish/vendor_completions.d/" + program + ".fish",
		}[shell]
	case strings.HasPrefix(name, "tmshare-"):
		return "usr/bin/" + name
	case name == "LICENSE":
		return "usr/share/doc/tmshare/copyright"
	}
	return "usr/share/doc/tmshare/" + name
}
