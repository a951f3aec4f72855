package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is asked by it goes to the same place, with the same credentials.
func TestEveryAdapterShowsTheClientThatItCallsBy(t *testing.T) {
	for _, name := range everyAdapter() {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				held := fmt.Sprint(r.Header)
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"path":%q}`, r.URL.Path)
				if !strings.Contains(held, kitKey) {
					t.Error("without the credentials: ", held)
				}
			}))
			t.Cleanup(server.Close)
			a := newAdapterFor(t, name, Config{BaseURL: server.URL, Credentials: Secret(kitKey)})
			c := a.Client()
			require.NotNil(t, c)
			require.Same(t, c, a.Client())
			var got struct{ Path string }
			_, err := c.Get(t.Context(), c.URL("more"), &got)
			require.NoError(t, err)
			require.Equal(t, "/more", got.Path)
		})
	}
}
