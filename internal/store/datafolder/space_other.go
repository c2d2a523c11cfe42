//go:build !(linux || darwin || freebsd)

package datafolder

import "math"

func FreeBytes(string) (int64, error) { return math.MaxInt64, nil }
