package kv

// ManyReader is a Reader of an engine for which each question takes its time, however little it asks for: one whose
// database may be on another machine. It answers many questions at once.
type ManyReader interface {
	Reader

	// ReadMany is [Reader.Get] of keys, and [Reader.Range] of the first rows of prefixes, at most so many of each. It
	// calls value with the value of a key, and rows with the first rows of a prefix; more says that there may be others
	// behind them. What these are given stays as it is, and must not be changed.
	//
	// Large values are left out: the caller reads each of them alone. Each key and each prefix is to be given once.
	ReadMany(keys, prefixes [][]byte, most int, value func(key, value []byte),
		rows func(prefix []byte, rows []Row, more bool)) error
}
