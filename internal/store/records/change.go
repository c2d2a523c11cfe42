package records

import "github.com/tmshare/tmshare/fragment"

// Changing is the records of a source that are to be changed.
type Changing interface {
	PutTopic(*fragment.Topic) error
	DeleteTopic(*fragment.Topic) error
	PutAssociation(*fragment.Association) error
	DeleteAssociation(*fragment.Association) error
}

// ApplyChange writes the records of a change. What goes is deleted first, so
// that identifiers can move from one topic to another.
func ApplyChange(state Changing, change *fragment.Change) error {
	for _, a := range change.DeleteAssociations {
		if err := state.DeleteAssociation(a); err != nil {
			return err
		}
	}
	for _, ref := range change.DeleteTopics {
		if err := state.DeleteTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref}}}); err != nil {
			return err
		}
	}
	for _, t := range change.PutTopics {
		if err := state.DeleteTopic(t); err != nil {
			return err
		}
	}
	for _, t := range change.PutTopics {
		if err := state.PutTopic(t); err != nil {
			return err
		}
	}
	for _, a := range change.PutAssociations {
		if err := state.PutAssociation(a); err != nil {
			return err
		}
	}
	return nil
}
