// Package server publishes the topic maps of a store over HTTP: the four feeds
// of TMShare, snapshot data, fragment data, and the ways in for changes.
//
// [Config] says how, [New] makes a [Server], [Server.ServeHTTP] answers
// requests. routes.go has the table of URLs; feeds.go makes the documents,
// data.go serves what they link to, write.go takes changes.
package server
