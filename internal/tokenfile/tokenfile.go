// Package tokenfile reads files of bearer tokens (RFC 6750).
package tokenfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

// Token is one of those in a file.
type Token struct {
	Value string
	Name  string // of its owner; may be empty
}

// maxSize is the number of bytes of a file that are read.
const maxSize = 1 << 20

// Read reads the tokens of a file, at least one. Each is on a line of its own; empty lines and lines that begin with #
// are passed over. A line may have the name of the token's owner before it, with a colon and a blank between them. A
// byte order mark is no part of a token.
func Read(file string) ([]Token, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("the file with tokens: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSize))
	if err != nil {
		return nil, fmt.Errorf("the file with tokens: %w", err)
	}
	all, err := parse(b)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return all, err
}

func parse(b []byte) (all []Token, err error) {
	b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	if bytes.IndexByte(b, 0) >= 0 {
		return nil, errors.New("is no text in UTF-8, but may be in UTF-16: save it as UTF-8")
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, token, named := strings.Cut(line, ": ")
		if !named {
			name, token = "", line
		}
		token = strings.TrimSpace(token)
		if strings.ContainsFunc(token, func(c rune) bool {
			return unicode.IsControl(c) || c == '\uFEFF' || c == unicode.ReplacementChar
		}) {
			return nil, fmt.Errorf(
				"the token on line %d has characters that no header of HTTP can have: write it anew, as plain text in UTF-8", n)
		}
		all = append(all, Token{token, strings.TrimSpace(name)})
	}
	if len(all) == 0 {
		return nil, errors.New("has no token in it; write one on a line of its own")
	}
	return all, nil
}
