package provider

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// lookalikes are names that a fold of package strings takes for replicate.example,
// and others that a reader might. Where two are one to DNS no harm comes of a
// refusal.
var lookalikes = []string{
	"replİcate.example", "repl%C4%B0cate.example", "replıcate.example", "replicate。example", "ｒeplicate.example", "xn--replicate-kbb.example",
	"replicate.example..", ".replicate.example", "replicate.example.evil.example", "replicate.example%2eevil.example", "evil.example%23.replicate.example",
	"replicate.example:0443", "replicate.example:444", "[::1]", "[fe80::1%25replicate.example]", "127.0.0.1",
}

// A name that only looks like that of the host gets no credential, neither by an
// answer's URL nor by a redirect.
func TestALookalikeOfTheHostIsAnother(t *testing.T) {
	c, err := NewClient(Config{BaseURL: "https://replicate.example", Hosts: []string{"kit.example"}})
	require.NoError(t, err)
	for _, host := range append(lookalikes, "\u212Ait.example", "kİt.example") {
		require.Empty(t, c.Ref("https://"+host+"/x"), host)
		_, err := c.Get(t.Context(), "https://"+host+"/x", nil)
		require.Error(t, err, host)
		to, err := http.NewRequest(http.MethodGet, "https://"+host+"/x", nil)
		if err != nil {
			continue // net/http does not take it either
		}
		for _, from := range []string{"https://replicate.example/", "http://replicate.example/"} {
			first, err := http.NewRequest(http.MethodGet, from, nil)
			require.NoError(t, err)
			require.ErrorIs(t, checkRedirect(to, []*http.Request{first}), ErrForeignHost, "%s to %s", from, host)
		}
	}
}

// A name of other letters is reached where it is configured.
func TestAHostOfOtherLettersIsItself(t *testing.T) {
	c, err := NewClient(Config{BaseURL: "https://bücher.example"})
	require.NoError(t, err)
	require.NotEmpty(t, c.Ref("https://bücher.EXAMPLE./x"))
	require.Empty(t, c.Ref("https://bucher.example/x"))
}

// Whatever a URL says, what is dialed is the host of BaseURL or nothing.
func TestOnlyTheHostIsDialed(t *testing.T) {
	var dialed []string
	transport := &http.Transport{DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		dialed = append(dialed, addr)
		return nil, net.ErrClosed
	}}
	c, err := NewClient(Config{BaseURL: "http://replicate.example", HTTP: &http.Client{Transport: transport}})
	require.NoError(t, err)
	for _, host := range append(lookalikes, "replicate.example", "REPLICATE.example.", "replicate.example:") {
		_, err := c.Get(t.Context(), "http://"+host+"/x", nil)
		require.Error(t, err, host)
	}
	for _, url := range []string{"//evil.example/x", `\\evil.example\x`, `/\evil.example`, "/@evil.example/", "https:evil.example", "//@evil.example", "http:///x", "http://evil.example@replicate.example/"} {
		_, err := c.Get(t.Context(), url, nil)
		require.Error(t, err, url)
		_, _ = (&Replicate{c}).Check(t.Context(), jobpoll.Job{ID: "x", Ref: url})
	}
	require.NotEmpty(t, dialed)
	for _, addr := range dialed {
		require.Contains(t, []string{"replicate.example:80", "REPLICATE.example.:80", "replicate.example.:80"}, addr)
	}
}
