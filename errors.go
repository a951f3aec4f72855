package jobpoll

import (
	"errors"
	"fmt"
)

// Errors of a Poller, for errors.Is: those that are returned name the job too.
var (
	// ErrResolved is matched by the error of Watch for a job whose end is
	// already known; errors.As with a *ResolvedError gives the outcome.
	ErrResolved = errors.New("jobpoll: the job is already resolved")
	// ErrUnknownRoute is matched when no route has the name.
	ErrUnknownRoute = errors.New("no such route")
	// ErrUnknownJob is matched when no job is watched under the key.
	ErrUnknownJob = errors.New("no such job is watched")
	// ErrDuplicateKey is matched when another job has the ClientKey.
	ErrDuplicateKey = errors.New("the ClientKey belongs to another job")
	// ErrRunning is what Run returns while it is already running.
	ErrRunning = errors.New("jobpoll: Run is already running")
	// ErrShutdown is matched by the error of a Wait that the end of Run ended.
	ErrShutdown = errors.New("the Poller was shut down")
	// ErrNoCanceler is matched when the route's Checker cannot cancel.
	ErrNoCanceler = errors.New("the route's Checker is no Canceler")
)

// ResolvedError carries the outcome of a job that is already resolved. It
// matches ErrResolved.
type ResolvedError struct{ Outcome Outcome }

// Error names the job and how it ended.
func (e *ResolvedError) Error() string {
	return fmt.Sprintf("jobpoll: %s: already resolved: %s", e.Outcome.Job.Key(), e.Outcome.Reason)
}

// Is matches ErrResolved.
func (e *ResolvedError) Is(target error) bool { return target == ErrResolved }
