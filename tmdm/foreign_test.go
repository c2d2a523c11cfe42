package tmdm

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every method that takes topics, whichever there are, meets topics that cannot
// take part with one of the three errors, as a result or a panic, or else only
// looks: in no case is anything changed.
func TestMethodsMeetTopicsThatCannotTakePart(t *testing.T) {
	errs := map[string]error{"nil": ErrNoTopic, "foreign": ErrOtherMap, "removed": ErrRemoved}
	build := func(kind string) (tm *TopicMap, bad *Topic, receivers []any) {
		tm = New()
		here := si(tm, "here")
		switch kind {
		case "foreign":
			bad = si(New(), "foreign")
		case "removed":
			bad = si(tm, "removed")
			require.NoError(t, bad.Remove())
		}
		name := here.AddName("name", here)
		a := tm.CreateAssociation(here)
		return tm, bad, []any{
			tm, here, name, name.AddVariant("v", "", si(tm, "theme")), here.AddOccurrence("o", "", here),
			a, a.AddRole(here, here), tm.Scope(here),
		}
	}
	refused, looked := 0, 0
	for kind, want := range errs {
		_, _, receivers := build(kind)
		for i := range receivers {
			typ := reflect.TypeOf(receivers[i])
			for m := range typ.NumMethod() {
				method := typ.Method(m)
				if !takesTopics(method.Type) {
					continue
				}
				what := kind + " " + typ.String() + "." + method.Name
				tm, bad, receivers := build(kind)
				before := canonical(tm)
				failed := call(method, receivers[i], bad)
				switch {
				case failed != nil:
					assert.Equal(t, want, failed, what)
					refused++
				case kind == "nil" && slices.Contains([]string{"AddName", "SetType"}, method.Name):
					continue // the default name type
				default:
					looked++
				}
				assert.Equal(t, before, canonical(tm), what)
			}
		}
	}
	t.Logf("%d calls refused, %d only looked", refused, looked)
	assert.Greater(t, refused, 50)
	assert.Greater(t, looked, 25)
}

var topicType = reflect.TypeFor[*Topic]()

func isTopics(typ reflect.Type) bool {
	return typ == topicType || typ.Kind() == reflect.Slice && typ.Elem() == topicType
}

func takesTopics(method reflect.Type) bool {
	for i := 1; i < method.NumIn(); i++ {
		if isTopics(method.In(i)) {
			return true
		}
	}
	return false
}

// call calls a method with topic as each topic argument, walks the result, and returns the error that the method
// returned or panicked with.
func call(method reflect.Method, receiver any, topic *Topic) (failed any) {
	defer func() {
		if r := recover(); r != nil {
			failed = r
		}
	}()
	args := []reflect.Value{reflect.ValueOf(receiver)}
	for i := 1; i < method.Type.NumIn(); i++ {
		if in := method.Type.In(i); isTopics(in) {
			args = append(args, reflect.ValueOf(topic))
		} else {
			args = append(args, reflect.Zero(in))
		}
	}
	for _, result := range method.Func.Call(args) {
		if result.Kind() == reflect.Func { // an iterator
			yield := func([]reflect.Value) []reflect.Value { return []reflect.Value{reflect.ValueOf(true)} }
			result.Call([]reflect.Value{reflect.MakeFunc(result.Type().In(0), yield)})
		}
		if err, isError := result.Interface().(error); isError {
			return err
		}
	}
	return nil
}
