package scan

const (
	spaceXML   = "http://www.w3.org/XML/1998/namespace"
	spaceXMLNS = "http://www.w3.org/2000/xmlns/"
)

// prefix has its present namespace; "" if it is not declared, or is the empty prefix without a default namespace.
type prefix struct {
	name, space string
}

// binding is a declaration in force, and the one that it shadows.
type binding struct {
	prefix *prefix
	outer  string
}

// Binding is a declaration of a namespace.
type Binding struct {
	Prefix, Space string
}

// declare puts the declarations of a start tag into force (Namespaces in XML 1.0
// §3, Declaring Namespaces). p is where the tag begins.
func (s *Scanner) declare(p int) error {
	for _, d := range s.declared {
		pre, value := d.name.declares, d.value
		if err := s.checkDeclaration(p, pre.name, value); err != nil {
			return err
		}
		if len(s.bindings) == s.limits.Namespaces {
			return s.limitError(p, "Namespaces", int64(s.limits.Namespaces))
		}
		s.bindings = append(s.bindings, binding{pre, pre.space})
		pre.space = s.space(value)
	}
	return nil
}

// checkDeclaration enforces the namespace constraints Reserved Prefixes and
// Namespace Names, and No Prefix Undeclaring (§3, §5).
func (s *Scanner) checkDeclaration(p int, pre string, value []byte) error {
	switch {
	case pre == "xmlns":
		return s.errorf(p, "the prefix xmlns cannot be declared")
	case string(value) == spaceXMLNS:
		return s.errorf(p, "%s cannot be declared as %s, which is for xmlns alone", prefixLabel(pre), spaceXMLNS)
	case pre == "xml" && string(value) != spaceXML:
		return s.errorf(p, "the prefix xml can only be declared as %s", spaceXML)
	case pre != "xml" && string(value) == spaceXML:
		return s.errorf(p, "%s cannot be declared as %s, which is for xml alone", prefixLabel(pre), spaceXML)
	case pre != "" && len(value) == 0:
		return s.errorf(p, "the prefix %s is declared without a namespace", excerpt(pre))
	}
	return nil
}

func prefixLabel(pre string) string {
	if pre == "" {
		return "the default namespace"
	}
	return "the prefix " + excerpt(pre)
}

// undeclare takes the innermost declarations out of force, down to n.
func (s *Scanner) undeclare(n int) {
	for i := len(s.bindings) - 1; i >= n; i-- {
		s.bindings[i].prefix.space = s.bindings[i].outer
	}
	s.bindings = s.bindings[:n]
}

// The limits of the namespace names that are kept, to make one string for all declarations.
const (
	mostSpaces     = 256
	mostSpaceBytes = 1024
)

func (s *Scanner) space(value []byte) string {
	if space, ok := s.spaces[string(value)]; ok {
		return space
	}
	space := string(value)
	if len(space) <= mostSpaceBytes {
		if len(s.spaces) == mostSpaces {
			clear(s.spaces)
		}
		s.spaces[space] = space
	}
	return space
}

// resolve gives the attributes their namespaces and makes sure that no two have
// the same expanded name (Namespaces in XML 1.0 §6.3, Uniqueness of Attributes).
// p is where the tag begins.
func (s *Scanner) resolve(p int) error {
	prefixed := 0
	for i := range s.attrs {
		a := &s.attrs[i]
		if a.Prefix == "" {
			continue
		}
		pre := s.attrNames[i].prefix
		if pre.space == "" && !s.assume(p, pre) {
			return s.undeclared(p, pre.name, "attribute", s.attrNames[i].raw)
		}
		a.Space = pre.space
		prefixed++
	}
	if prefixed < 2 {
		return nil
	}
	if prefixed > 8 {
		return s.uniqueByMap(p)
	}
	for i := range s.attrs {
		if s.attrs[i].Prefix == "" {
			continue
		}
		for j := range i {
			if a, b := &s.attrs[i].Name, &s.attrs[j].Name; a.Local == b.Local && a.Space == b.Space {
				return s.repeated(p, i)
			}
		}
	}
	return nil
}

// uniqueByMap checks tags with many attributes, for which comparing each pair would allow an attack.
func (s *Scanner) uniqueByMap(p int) error {
	if s.seen == nil {
		s.seen = make(map[Name]bool)
	}
	clear(s.seen)
	for i := range s.attrs {
		n := s.attrs[i].Name
		n.Prefix = ""
		if s.seen[n] {
			return s.repeated(p, i)
		}
		s.seen[n] = true
	}
	return nil
}

func (s *Scanner) repeated(p, i int) error {
	return s.errorf(p, "two attributes are named %s in the namespace %s", excerpt(s.attrs[i].Local),
		excerpt(s.attrs[i].Space))
}

// assume declares an undeclared prefix if the options do, and reports whether they do.
func (s *Scanner) assume(p int, pre *prefix) bool {
	space, ok := s.options.Namespaces[pre.name]
	if !ok {
		return false
	}
	pre.space = space
	if s.options.Assumed != nil {
		line, column := s.lineAt(p)
		s.options.Assumed(pre.name, line, column)
	}
	return true
}

func (s *Scanner) undeclared(p int, pre, what, raw string) error {
	if pre == "xmlns" {
		return s.errorf(p, "the prefix xmlns cannot be used in the name of an element, <%s>", excerpt(raw))
	}
	err := s.errorf(p, "the prefix of the %s %s is not declared", what, excerpt(raw))
	err.Prefix = pre
	return err
}
