package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/provider"
)

// An access key and a secret key of Kling's: the adapter signs tokens of them, and
// another one before one runs out.
func ExampleKlingTokens() {
	kling, err := provider.NewKling(provider.Config{Tokens: provider.KlingTokens("access-key", "secret-key")})
	fmt.Println(kling != nil, err)

	// An environment variable that is not set is told at once.
	_, err = provider.NewKling(provider.Config{Tokens: provider.KlingTokens("access-key", "")})
	fmt.Println(err != nil)

	token, err := provider.KlingTokens("access-key", "secret-key")(context.Background(), time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC))
	fmt.Println(token, err) // the secret is printed nowhere
	// Output:
	// true <nil>
	// true
	// provider.Token(…, 2026-01-02T03:35:00Z) <nil>
}

// Access tokens that live for an hour, as those of Google and of Azure do.
func ExampleTokenSource() {
	issued := 0
	source := func(_ context.Context, now time.Time) (provider.Token, error) {
		issued++ // here one would ask who gives them, and read "access_token" and "expires_in"
		return provider.Token{Secret: fmt.Sprintf("access-token-%d", issued), Expiry: now.Add(time.Hour)}, nil
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"name":"projects/p/locations/l/publishers/google/models/m/operations/o"}`)
	}))
	defer server.Close()

	clock := polltest.NewClock(time.Time{}) // in a program there is no need of one
	vertex, err := provider.NewVertexVeo(provider.Config{BaseURL: server.URL + "/v1", Tokens: source, Clock: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	job := jobpoll.Job{Route: "vertex", ID: "projects/p/locations/l/publishers/google/models/m/operations/o"}
	for range 4 {
		rep, err := vertex.Check(context.Background(), job)
		fmt.Println(rep.State, err)
		clock.Advance(28 * time.Minute)
	}
	// Output:
	// Bearer access-token-1
	// running <nil>
	// Bearer access-token-1
	// running <nil>
	// Bearer access-token-2
	// running <nil>
	// Bearer access-token-2
	// running <nil>
}
