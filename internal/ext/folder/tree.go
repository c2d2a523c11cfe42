package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/tmshare/tmshare/internal/follow"
)

// candidate returns the name, in the folder, that the file of a record is to get, the n-th
// best from 0. What the record had before keeps all but its ending.
func (f *Folder) candidate(id string, before, held *Held, n int) string {
	if !f.Mirror {
		if before != nil && before.File != "" {
			return numbered(strings.TrimSuffix(before.File, endingOf(before.Type)), n) + endingOf(held.Type)
		}
		return name(id, held.Title, held.Type, n)
	}
	if n < 2 {
		if p := treePath(id, n == 1); p != "" {
			return p
		}
	}
	return name(id, "", held.Type, max(n-2, 0))
}

// treePath returns the path of a resource in a mirror: the host of its URI, and below it the path, segment by segment.
// Characters that some file systems refuse are escaped as in URIs; so is the query, which is appended to the last
// segment. A path that ends in "/" becomes an index.html. With own, a hash makes the name unique. It returns "" for
// URIs without such a layout.
func treePath(uri string, own bool) string {
	const most = 1000 // bytes: the limit of some systems
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return ""
	}
	_, rest, _ := strings.Cut(uri, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[i:]
	} else {
		rest = ""
	}
	way, tail := rest, ""
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		way, tail = rest[:i], rest[i:]
	}
	host := segment(strings.ReplaceAll(strings.ToLower(u.Host), ":", "+"))
	if strings.HasPrefix(host, ".") { // not as what is ours
		host = "%2E" + host[1:]
	}
	segments := strings.Split(strings.TrimPrefix(way, "/"), "/")
	last := len(segments) - 1
	segments[last] += tail
	if segments[last] == "" {
		segments[last] = "index.html"
	}
	for i, s := range segments {
		if segments[i] = segment(s); s == "" {
			segments[i] = "%2F"
		}
	}
	if own {
		stem, ending := segments[last], path.Ext(segments[last])
		if stem = strings.TrimSuffix(stem, ending); stem == "" || len(ending) > 20 {
			stem, ending = segments[last], ""
		}
		segments[last] = cut(stem, longestOwn) + "~" + follow.ShortHash(uri) + ending
	}
	whole := host + "/" + strings.Join(segments, "/")
	if len(whole) > most {
		return ""
	}
	return whole
}

// Bytes of a name; file systems have 255.
const (
	longest    = 200
	longestOwn = 160
)

// devices are names of devices on Windows, with any extension.
var devices = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// segment returns a segment of a URI as a name that is one on all file systems.
func segment(s string) string {
	var b strings.Builder
	escape := func(c byte) { fmt.Fprintf(&b, "%%%02X", c) }
	dots := strings.Trim(s, ".") == ""
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.' && (dots || i == len(s)-1), c == '-' && i == 0:
			escape(c)
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			strings.IndexByte("-._~!$&'()+,;=@[]%", c) >= 0:
			b.WriteByte(c)
		default:
			escape(c)
		}
	}
	clean := b.String()
	if devices.MatchString(clean) {
		clean = fmt.Sprintf("%%%02X", clean[0]) + clean[1:]
	}
	if len(clean) > longest {
		clean = cut(clean, longestOwn) + "~" + follow.ShortHash(s)
	}
	return clean
}

func cut(s string, most int) string { return s[:min(len(s), most)] }

// occupy notes that a name is that of a record's file. Names that differ by case alone are
// one name, as they are on some file systems.
func (f *Folder) occupy(file, id string) {
	f.names[strings.ToLower(file)] = id
	for _, dir := range above(file) {
		f.dirs[strings.ToLower(dir)]++
	}
}

func (f *Folder) vacate(file string) {
	if _, ok := f.names[strings.ToLower(file)]; !ok {
		return
	}
	delete(f.names, strings.ToLower(file))
	for _, dir := range above(file) {
		if key := strings.ToLower(dir); f.dirs[key] > 1 {
			f.dirs[key]--
		} else {
			delete(f.dirs, key)
		}
	}
}

// above returns the folders in which a file is, but for the one of all.
func above(file string) []string {
	var dirs []string
	for i := range len(file) {
		if file[i] == '/' {
			dirs = append(dirs, file[:i])
		}
	}
	return dirs
}

// free reports whether no file of another record, and no foreign file, has a name or blocks it.
func (f *Folder) free(file string) (bool, error) {
	key := strings.ToLower(file)
	if _, taken := f.names[key]; taken || f.dirs[key] > 0 {
		return false, nil
	}
	for _, dir := range above(file) {
		if _, taken := f.names[strings.ToLower(dir)]; taken {
			return false, nil
		}
	}
	for _, dir := range above(file) {
		if f.toBeRemoved(dir) { // a file to be removed, which the folder replaces
			return true, nil
		}
		info, err := f.root.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return true, nil
		case err != nil:
			return false, err
		case !info.IsDir():
			return false, nil
		}
	}
	if f.toBeRemoved(file) {
		return true, nil
	}
	_, err := f.root.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

func (f *Folder) toBeRemoved(file string) bool {
	temp, ours := f.state.Unfinished[file]
	return ours && temp == ""
}

// prune removes empty folders.
func (f *Folder) prune(dir string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := f.root.Lstat(dir); err == nil && !info.IsDir() {
			return
		}
		if err := f.root.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}
