package kv

import (
	"errors"
	"fmt"
)

// ErrOlder is the error for data of an earlier program in a layout that this one does not read.
var ErrOlder = errors.New("an earlier program wrote it, and nothing is converted")

// Older returns an [ErrOlder] about data with the number of a layout, if this program reads another one. It has the
// remedy, and its losses.
func Older(what, layout string, has, reads any) error {
	return fmt.Errorf("%s %s %v, this program reads %s %v: %w. Nothing was changed. "+
		"With the program that wrote it, \"export\" each map, and note the settings of collections and subscriptions. "+
		"With this one, \"import\" the maps into a new store, and \"subscribe\" again. "+
		"Epochs, subscriptions and rejections are lost: readers start clean", what, layout, has, layout, reads, ErrOlder)
}
