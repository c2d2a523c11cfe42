// Package search says how topics are found by name: how text is folded and cut into words, under which words a topic
// stands in an index, and how well a topic fits what somebody looks for. It does no input or output.
package text
