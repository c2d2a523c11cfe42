package texts

import (
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// A template marks each text of a page by "[[" and "]]". The text is its own key in the catalogue of each language. In
// the key, numbers replace tags and actions such as {{.Title}}: "{1} of {2}". So a translation can reorder them, and
// html/template escapes values by context. A block such as {{if}} up to its end is one placeholder. "|" separates the
// singular and the plural for {{count}}.

// Template returns the source of the template of a page in a language.
func (l *Language) Template(file string) (string, error) {
	source, err := fs.ReadFile(Pages, file)
	if err != nil {
		return "", err
	}
	made, err := expand(string(source), l.forms, func(key string) string { return l.Say(Text(key)) })
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return made, err
}

// Keys returns the texts of a template, in order.
func Keys(source string) (all []string, err error) {
	_, err = expand(source, nil, func(key string) string {
		all = append(all, key)
		return key
	})
	return all, err
}

// expand puts the texts of a language in the place of the marked ones.
func expand(source string, forms []string, say func(key string) string) (string, error) {
	var made strings.Builder
	for {
		at := strings.Index(source, "[[")
		if at < 0 {
			made.WriteString(source)
			return made.String(), nil
		}
		made.WriteString(source[:at])
		end := closing(source[at:])
		if end < 0 {
			return "", fmt.Errorf("%.40q has no end", source[at:])
		}
		inner := source[at+2 : at+end]
		before := made.String()
		if strings.LastIndex(before, "{{") > strings.LastIndex(before, "}}") { // within a string of an action
			quoted := strconv.Quote(say(inner))
			made.WriteString(quoted[1 : len(quoted)-1])
		} else {
			text, err := message(inner, forms, say)
			if err != nil {
				return "", err
			}
			made.WriteString(text)
		}
		source = source[at+end+2:]
	}
}

// closing returns where the mark ends that a source begins with, -1 where it does not.
func closing(source string) int {
	depth := 0
	for i := 0; i+1 < len(source); i++ {
		switch source[i : i+2] {
		case "[[":
			depth++
		case "]]":
			if depth--; depth == 0 {
				return i
			}
		default:
			continue
		}
		i++
	}
	return -1
}

var (
	token   = regexp.MustCompile(`(?s)^(?:\{\{.*?\}\}|<code>.*?</code>|<(?:\{\{.*?\}\}|[^>{])*>)`)
	opens   = regexp.MustCompile(`^\{\{-?\s*(?:if|range|with)\b`)
	closes  = regexp.MustCompile(`^\{\{-?\s*end\b`)
	counted = regexp.MustCompile(`\{\{count ([^}]*)\}\}`)
	hole    = regexp.MustCompile(`\{(\d+)\}`)
	blank   = regexp.MustCompile(`\s+`)
)

// message puts a translation in the place of a text, with its tags and actions.
func message(inner string, forms []string, say func(string) string) (string, error) {
	var key strings.Builder
	var holes []string
	depth, within := 0, false
	for rest := inner; rest != ""; {
		part := token.FindString(rest)
		switch {
		case part == "" && depth == 0:
			part = rest[:1]
			if part == "{" || part == "<" {
				return "", fmt.Errorf("%q cannot be read", inner)
			}
			if key.WriteString(part); part == "|" {
				holes = nil // each form has the same ones
			}
			rest, within = rest[1:], false
			continue
		case part == "":
			part = rest[:1]
		case opens.MatchString(part):
			depth++
		case closes.MatchString(part):
			depth--
		}
		if !within {
			holes, within = append(holes, ""), true
			fmt.Fprintf(&key, "{%d}", len(holes))
		}
		holes[len(holes)-1] += part
		rest = rest[len(part):]
	}
	if depth != 0 {
		return "", fmt.Errorf("a block begins or ends within %q", inner)
	}
	for i := range holes {
		var err error
		if holes[i], err = expand(holes[i], forms, say); err != nil {
			return "", err
		}
	}
	text := say(blank.ReplaceAllString(key.String(), " "))
	texts := strings.Split(text, "|")
	if len(texts) == 1 {
		return filled(text, holes), nil
	}
	number := counted.FindStringSubmatch(inner)
	if number == nil {
		return "", fmt.Errorf("%q counts nothing", inner)
	}
	var made strings.Builder
	for i, text := range texts[:len(texts)-1] {
		form := ""
		if i < len(forms) {
			form = forms[i]
		}
		fmt.Fprintf(&made, `{{%sif eq (form %s) %q}}%s`, map[bool]string{true: "else "}[i > 0], number[1], form,
			filled(text, holes))
	}
	return made.String() + "{{else}}" + filled(texts[len(texts)-1], holes) + "{{end}}", nil
}

// plain escapes text for templates, as text and within attributes.
var plain = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "{", "&#123;")

// filled returns a text with tags and actions in the place of their numbers.
func filled(text string, holes []string) string {
	var made strings.Builder
	at := 0
	for _, m := range hole.FindAllStringSubmatchIndex(text, -1) {
		made.WriteString(plain.Replace(text[at:m[0]]))
		if n, _ := strconv.Atoi(text[m[2]:m[3]]); n > 0 && n <= len(holes) {
			made.WriteString(holes[n-1])
		}
		at = m[1]
	}
	made.WriteString(plain.Replace(text[at:]))
	return made.String()
}
