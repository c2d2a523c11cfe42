package kv

import (
	"errors"
	"fmt"
)

// ErrOlder says that an earlier program wrote something, in a layout that this one does not read.
var ErrOlder = errors.New("an earlier program wrote it, and nothing is converted")

// Older returns an [ErrOlder] about what has a number of a layout, where this program reads another. It says what to
// do, and what that loses.
func Older(what, layout string, has, reads any) error {
	return fmt.Errorf("%s %s %v, this program reads %s %v: %w. Nothing was changed. "+
		"With the program that wrote it, \"export\" each map, and note the settings of collections and subscriptions. "+
		"With this one, \"import\" the maps into a new store, and \"subscribe\" again. "+
		"Epochs, subscriptions and rejections are lost: readers start clean", what, layout, has, layout, reads, ErrOlder)
}
