package jsonld

import (
	"math"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/internal/rdf"
)

const (
	xsdBoolean = rdf.XSD + "boolean"
	xsdInteger = rdf.XSD + "integer"
	xsdDouble  = rdf.XSD + "double"

	integerDigits  = 21 // of those below 10^21
	longestExactly = 800
)

// number returns the lexical form of a JSON number, and its default datatype: an integer without a fraction and below
// 10^21 has all its digits; any other number is a double (JSON-LD 1.1 API §8.2.2, Object to RDF Conversion). exact
// reports whether the double equals the number.
func number(n, datatype string) (lexical, typ string, exact bool) {
	sign, digits, exponent := decimal(n)
	if datatype == xsdDouble || exponent < 0 || len(digits)+exponent > integerDigits {
		lexical, _, exact = double(n)
		return lexical, xsdDouble, exact
	}
	if digits == "" {
		return "0", xsdInteger, true
	}
	return sign + digits + strings.Repeat("0", exponent), xsdInteger, true
}

// decimal returns the digits of a number, without zeros at either end, and the power of ten that is their unit.
func decimal(n string) (sign, digits string, exponent int) {
	if n[0] == '-' {
		sign, n = "-", n[1:]
	}
	if e := strings.IndexAny(n, "eE"); e >= 0 {
		exponent, _ = strconv.Atoi(n[e+1:]) // the largest integer where it is beyond that
		exponent = min(max(exponent, math.MinInt32), math.MaxInt32)
		n = n[:e]
	}
	whole, fraction, _ := strings.Cut(n, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return sign, "", 0
	}
	return sign, short, exponent - len(fraction) + len(digits) - len(short)
}

// double returns the canonical form of the double that is next to a number (XML Schema 1.1 Part 2 §E.2, Canonical
// Mapping for doubles), and whether it is that number.
func double(n string) (lexical string, f float64, exact bool) {
	f, _ = strconv.ParseFloat(n, 64)
	if math.IsInf(f, 0) {
		sign, _, _ := decimal(n)
		return sign + "INF", f, false
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	power, _ := strconv.Atoi(exponent)
	lexical = mantissa + "E" + strconv.Itoa(power)

	_, digits, unit := decimal(n)
	if len(digits) > longestExactly {
		return lexical, f, false
	}
	_, shortest, ofUnit := decimal(strconv.FormatFloat(f, 'E', max(len(digits)-1, 0), 64))
	return lexical, f, shortest == digits && ofUnit == unit
}
