// Package datafolder keeps the folder of a node: whose it is, who may have it, and whether it is
// whole.
//
// The folder has an [Identity] in a file, the database of an engine in [Database], and the
// store's files in [Snapshots] and [Scratch]. [Lock] finds out what there is before anything is
// changed, and refuses a folder that is damaged. What the rows mean is the store's affair.
package datafolder
