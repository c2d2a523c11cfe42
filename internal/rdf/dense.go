package rdf

import "fmt"

// A statement takes some hundred bytes in memory and in a map, and a collection makes two of the two bytes of a number.
// So a document may make one statement of so many bytes of it, and so many beyond that. Statements with whole IRIs have
// more bytes.
const (
	bytesOfStatement = 32
	freeStatements   = 100_000
)

// CheckDensity refuses a document that makes too many statements of the bytes that are read of it.
func CheckDensity(statements, read int64) error {
	if statements <= freeStatements+read/bytesOfStatement {
		return nil
	}
	return fmt.Errorf(
		"the document makes more than %d statements, and one more for each %d bytes of it; divide its lists, or write it "+
			"as N-Triples with whole IRIs", freeStatements, bytesOfStatement)
}
