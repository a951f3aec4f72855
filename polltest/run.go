package polltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/jobpoll/jobpoll"
)

// Run runs a Poller in the background, for examples, benchmarks and programs
// where there is no test that could fail; in a test Start is better. clock is
// the Poller's Config.Clock. Run returns when the Poller is up and idle, or
// when its Run has returned.
//
// end ends the Poller's Run and returns its error. Where it waits for something
// on the clock, the clock is moved on. end may be called again and does
// nothing then.
func Run(clock *Clock, p *jobpoll.Poller) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var result error
	begun := clock.begunCount()
	go func() {
		defer close(ended)
		result = p.Run(ctx)
	}()
	end = func() error {
		cancel()
		if !clock.awaitEnd(ended) {
			return errors.New("polltest: Run did not return within " + clock.realLimit().String() + " of real time after its context ended")
		}
		return result
	}
	if !clock.awaitBegun(begun, ended) {
		select {
		case <-ended:
			return end
		default:
			cancel()
			panic(fmt.Sprintf("polltest: Run did not begin to work within %v of real time: is its Config.Clock this clock?", clock.realLimit()))
		}
	}
	clock.Settle()
	return end
}
