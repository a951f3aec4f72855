package webhook

import (
	"errors"
	"fmt"
)

// faults are all that is wrong with a configuration.
type faults struct {
	what string // is configured
	all  []error
}

// at adds what is wrong with a field; nil is nothing.
func (f *faults) at(field string, err error) {
	if err != nil {
		f.all = append(f.all, fmt.Errorf("jobpoll: %s: %s: %w", f.what, field, err))
	}
}

// add adds a fault of a field.
func (f *faults) add(field, format string, args ...any) {
	f.at(field, fmt.Errorf(format, args...))
}

// join gives them as one error, nil if there are none.
func (f *faults) join() error { return errors.Join(f.all...) }

var errNoKey = errors.New("there is no key: anybody could send what it lets pass")
