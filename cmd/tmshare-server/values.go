package main

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/tokenfile"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// readTokens reads a file of tokens. names has the owners by token.
func readTokens(file string) (tokens []string, names map[string]string, err error) {
	all, err := tokenfile.Read(file)
	names = map[string]string{}
	for _, t := range all {
		if len(t.Name) > publish.MaxAuthor || !utf8.ValidString(t.Name) {
			return nil, nil, fmt.Errorf("%s: the name %.20q… of a token is longer than %d bytes, or no UTF-8", file, t.Name,
				publish.MaxAuthor)
		}
		tokens, names[t.Value] = append(tokens, t.Value), t.Name
	}
	return tokens, names, err
}

// networks reads addresses and networks.
func networks(texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if a, single := netip.ParseAddr(text); single == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address such as 10.0.0.1 nor a network such as 10.0.0.0/8", text)
		}
		all = append(all, p)
	}
	return all, nil
}
