package jsonld

// maxComparisons is how many pairs of values of one property may be compared: the library compares each new one with
// all that there are.
const maxComparisons = 1 << 27

// values counts the values of each property of each node of an expanded document.
type values struct {
	of          map[[2]string]int // by the @id of the node, and the property
	comparisons int
}

// tooMany reports whether the values of an expanded document are too many to be compared.
func tooMany(expanded any) bool {
	v := &values{of: map[[2]string]int{}}
	v.count(expanded)
	return v.comparisons > maxComparisons
}

func (v *values) count(value any) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			v.count(each)
		}
	case map[string]any:
		id, _ := value["@id"].(string)
		for property, said := range value {
			v.count(said)
			all, ok := said.([]any)
			if !ok || property == "@list" || property == "@graph" || property == "@included" {
				continue
			}
			before := 0
			if id != "" {
				before = v.of[[2]string{id, property}]
				v.of[[2]string{id, property}] = before + len(all)
			}
			v.comparisons = min(v.comparisons+len(all)*(before+len(all)/2), 2*maxComparisons)
		}
	}
}

// statements returns how many statements an expanded document makes. A member of a list makes one, and one more.
func statements(value any, each int64) (n int64) {
	switch v := value.(type) {
	case []any:
		for _, member := range v {
			n += statements(member, each)
		}
	case map[string]any:
		if list, ok := v["@list"]; ok {
			return each + statements(list, 2)
		}
		n = each
		if _, ok := v["@value"]; ok {
			return n
		}
		for _, said := range v {
			n += statements(said, 1)
		}
	}
	return n
}
