package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobpoll/jobpoll"
)

// An account that allows 5 calls a second and 3 jobs at once, of which one call
// a second is kept for submissions. Calls of your own are charged with Acquire.
func ExampleNewBudget() {
	account := jobpoll.NewBudget("account", jobpoll.Limits{
		Total:  jobpoll.Limit{Rate: 5, Burst: 5, Concurrent: 10},
		Submit: jobpoll.LaneLimits{Reserve: jobpoll.Limit{Rate: 1}},
		Jobs:   3,
	})

	done, err := account.Acquire(context.Background(), jobpoll.LaneStatus)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = listJobs()
	done(err) // a rate limit cools the lane down
	fmt.Println(err)

	// Output: <nil>
}

// A rate limit that one call meets holds the others of its lane.
func ExampleBudget_Acquire() {
	account := jobpoll.NewBudget("account", jobpoll.Limits{})

	done, _ := account.Acquire(context.Background(), jobpoll.LaneStatus)
	done(&jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Hint: jobpoll.Hint{RetryAfter: time.Hour}})

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := account.Acquire(ctx, jobpoll.LaneStatus)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))

	done, err = account.Acquire(context.Background(), jobpoll.LaneSubmit)
	fmt.Println(err)
	done(nil)

	// Output:
	// true
	// <nil>
}

// Providers and routes are nodes below the account. A call passes all nodes
// from its own up; a rate limit stays where it belongs.
func ExampleBudget_Child() {
	account := jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 20}})
	provider := account.Child("provider", jobpoll.Limits{Total: jobpoll.Limit{Rate: 5}})
	preview := provider.Child("preview", jobpoll.Limits{Jobs: 2})
	film := provider.Child("film", jobpoll.Limits{})

	done, _ := preview.Acquire(context.Background(), jobpoll.LaneStatus)
	done(&jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Hint: jobpoll.Hint{RetryAfter: time.Hour}})

	done, err := film.Acquire(context.Background(), jobpoll.LaneStatus)
	fmt.Println(film.Name(), err)
	done(nil)

	// Output: account/provider/film <nil>
}

// Limits change while calls wait.
func ExampleBudget_SetLimits() {
	account := jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Concurrent: 1}})
	first, _ := account.Acquire(context.Background(), jobpoll.LaneStatus)

	time.AfterFunc(time.Millisecond, func() {
		account.SetLimits(jobpoll.Limits{Total: jobpoll.Limit{Concurrent: 2}})
	})
	second, err := account.Acquire(context.Background(), jobpoll.LaneStatus)
	fmt.Println(err)
	second(nil)
	first(nil)

	// Output: <nil>
}

func listJobs() error { return nil }
