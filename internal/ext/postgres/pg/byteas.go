package pg

import (
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// byteas are a parameter of type bytea[]. Its elements are many: [pgtype.ArrayCodec] takes several times as long for
// each.
type byteas [][]byte

// withoutEmpty returns the parameter without the empty ones at the end. As unnest fills up with NULL, COALESCE makes
// them again.
func withoutEmpty(all [][]byte) byteas {
	n := len(all)
	for n > 0 && len(all[n-1]) == 0 {
		n--
	}
	return all[:n]
}

// byteasCodec is the codec of bytea[].
type byteasCodec struct{ *pgtype.ArrayCodec }

func registerByteas(m *pgtype.Map) {
	element, ok := m.TypeForOID(pgtype.ByteaOID)
	if ok {
		m.RegisterType(&pgtype.Type{Name: "_bytea", OID: pgtype.ByteaArrayOID,
			Codec: byteasCodec{&pgtype.ArrayCodec{ElementType: element}}})
	}
}

// PlanEncode implements [pgtype.Codec].
func (c byteasCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(byteas); ok && format == pgtype.BinaryFormatCode {
		return encodeByteas{}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

type encodeByteas struct{}

// Encode implements [pgtype.EncodePlan]: the number of dimensions, a flag for NULLs, the type, the length and the lower
// bound of the dimension, then each element with its length before it.
func (encodeByteas) Encode(value any, b []byte) ([]byte, error) {
	all := value.(byteas)
	size := 20
	for _, bytea := range all {
		size += 4 + len(bytea)
	}
	b = slices.Grow(b, size)
	if len(all) == 0 {
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 0), 0)
		return binary.BigEndian.AppendUint32(b, pgtype.ByteaOID), nil
	}
	for _, n := range []uint32{1, 0, pgtype.ByteaOID, uint32(len(all)), 1} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	for _, bytea := range all {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(bytea))), bytea...)
	}
	return b, nil
}
