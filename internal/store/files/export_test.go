package files

// SetChunkSize sets the size of the chunks of new files in bytes, and returns what sets it back.
func SetChunkSize(n int64) func() {
	before := chunkSize
	chunkSize = n
	return func() { chunkSize = before }
}
