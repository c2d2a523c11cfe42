package words

import (
	"cmp"
	"slices"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

// orders are the languages with an order of their own, without special ones such as those of phone books.
var orders = slices.DeleteFunc(collate.Supported(), func(t language.Tag) bool { return len(t.Extensions()) > 0 })

var matcher = language.NewMatcher(orders)

// OrderFor returns the language whose order readers with an Accept-Language header expect (RFC 9110 §12.5.4): "und" for
// the default order of Unicode.
func OrderFor(acceptLanguage string) string {
	asked, _, err := language.ParseAcceptLanguage(acceptLanguage)
	if err != nil || len(asked) == 0 {
		return language.Und.String()
	}
	if _, at, confidence := matcher.Match(asked...); confidence > language.Low {
		return orders[at].String()
	}
	return language.Und.String()
}

// Collator returns the comparison of texts in the order of a language (Unicode Collation Algorithm, UTS #10): letters
// as in the language, case and accents only if all else is equal, digits by the value of the number. It is not safe for
// concurrent use.
func Collator(tag string) func(a, b string) int {
	c := collate.New(language.Make(tag), collate.Numeric)
	return func(a, b string) int { return cmp.Or(c.CompareString(a, b), cmp.Compare(a, b)) }
}

// Sort sorts a list for readers with an Accept-Language header: by the texts that say returns, in order.
func Sort[T any](list []T, acceptLanguage string, say func(*T) []string) {
	type key struct {
		texts []string
		T     T
	}
	all := make([]key, len(list))
	for i := range list {
		all[i] = key{say(&list[i]), list[i]}
	}
	compare := Collator(OrderFor(acceptLanguage))
	slices.SortStableFunc(all, func(a, b key) int { return slices.CompareFunc(a.texts, b.texts, compare) })
	for i := range all {
		list[i] = all[i].T
	}
}
