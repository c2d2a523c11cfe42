package files

// SetChunkSize sets the size of the chunks of new files in bytes, and returns a function that restores it.
func SetChunkSize(n int64) func() {
	before := chunkSize
	chunkSize = n
	return func() { chunkSize = before }
}
