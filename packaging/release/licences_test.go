package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// allowed are words of the licences under which modules may be in the programs: all let anybody pass them on, also in
// other works.
var allowed = map[string]string{
	"Apache-2.0": "Apache License Version 2.0",
	"BSD":        "Redistribution and use in source and binary forms, with or without modification, are permitted",
	"MIT":        "Permission is hereby granted, free of charge, to any person obtaining a copy of this software",
	"ISC":        "Permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted",
}

// others are words of licences that ask more of whoever passes the programs on.
var others = []string{"GNU GENERAL PUBLIC LICENSE", "GNU LESSER GENERAL PUBLIC LICENSE", "GNU AFFERO", "Mozilla Public License", "Server Side Public License", "Business Source License"}

// Each module that is in the programs has a licence that is allowed. A new licence is looked at by a person before it
// is allowed here.
func TestLicencesAreAllowed(t *testing.T) {
	t.Parallel()
	modules, err := listed()
	require.NoError(t, err)
	require.Greater(t, len(modules), 15)
	for _, m := range modules {
		files, err := licences(m.dir)
		require.NoError(t, err)
		require.NotEmpty(t, files, m.path)
		found := ""
		for _, f := range files {
			content, err := os.ReadFile(f)
			require.NoError(t, err)
			// Some quote the whole text with ">".
			text := strings.Join(strings.Fields(strings.ReplaceAll(string(content), ">", " ")), " ")
			for name, words := range allowed {
				if strings.Contains(text, words) {
					found = name
				}
			}
			for _, words := range others {
				assert.NotContains(t, text, words, "%s: %s", m.path, f)
			}
		}
		assert.NotEmpty(t, found, "%s has a licence that is not allowed: look at %v", m.path, files)
	}
}
