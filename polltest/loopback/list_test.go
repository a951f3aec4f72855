package loopback_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// arkList asks Ark's wire for a list, and gives the ids in it.
func arkList(t *testing.T, c *http.Client, server *loopback.Server, query string) (ids []string, total int, body string) {
	t.Helper()
	resp, body := do(t, c, "GET", server.URL()+"/api/v3/contents/generations/tasks?"+query, "")
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	for _, item := range field(t, body, "items").([]any) {
		ids = append(ids, item.(map[string]any)["id"].(string))
	}
	return ids, int(field(t, body, "total").(float64)), body
}

func TestAListHasPages(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	server := started(t, loopback.Config{Wire: loopback.Ark(), Clock: clock})
	c := client(t)
	for i := range 25 {
		server.Add(fmt.Sprintf("t%02d", i), `running`)
		clock.Advance(time.Second)
	}
	for query, want := range map[string]struct{ first, last, n int }{
		"":                                         {24, 5, 20},
		"page_num=2":                               {4, 0, 5},
		"page_num=2&page_size=10":                  {14, 5, 10},
		"page_num=3&page_size=10":                  {4, 0, 5},
		"page_num=4&page_size=10":                  {0, 0, 0},
		"page_num=-1&page_size=-1":                 {24, 5, 20},
		"page_num=x&page_size=9999":                {24, 0, 25},
		"page_num=9223372036854775807":             {0, 0, 0},
		"page_num=9223372036854775807&page_size=1": {0, 0, 0},
		"page_num=99999999999999999999":            {0, 0, 0},
		"page_num=2147483647":                      {0, 0, 0},
		"page_size=99999999999999999999":           {24, 0, 25},
		"page_num=-99999999999999999999":           {24, 5, 20},
	} {
		ids, total, _ := arkList(t, c, server, query)
		require.Equal(t, 25, total, query)
		require.Len(t, ids, want.n, query)
		if want.n > 0 {
			require.Equal(t, fmt.Sprintf("t%02d", want.first), ids[0], query)
			require.Equal(t, fmt.Sprintf("t%02d", want.last), ids[want.n-1], query)
		}
	}
}

func TestAListBeginsAfterAJobWhateverWasDeleted(t *testing.T) {
	server := started(t, loopback.Config{Wire: loopback.OpenAI(), PageSize: 2})
	c := client(t)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		server.Add(id, `running`)
	}
	do(t, c, "DELETE", server.URL()+"/v1/videos/a", "")
	do(t, c, "DELETE", server.URL()+"/v1/videos/d", "")
	for _, tt := range []struct {
		query string
		want  []string
		more  bool
	}{
		{"", []string{"e", "c"}, true},
		{"?after=c", []string{"b"}, false},
		{"?after=b", nil, false},
		{"?after=e&limit=1", []string{"c"}, true},
		{"?limit=9", []string{"e", "c", "b"}, false},
		{"?limit=-1", []string{"e", "c"}, true},
		{"?after=none", nil, false},
	} {
		_, body := do(t, c, "GET", server.URL()+"/v1/videos"+tt.query, "")
		var ids []string
		for _, video := range field(t, body, "data").([]any) {
			ids = append(ids, video.(map[string]any)["id"].(string))
		}
		assert.Equal(t, tt.want, ids, tt.query)
		assert.Equal(t, tt.more, field(t, body, "has_more"), tt.query)
	}
}

func TestAListOfSomeJobsIsALookAtEach(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	server := started(t, loopback.Config{Wire: loopback.Ark(), Clock: clock})
	c := client(t)
	server.Add("a", `queued; at 0s running once`)
	server.Add("b", `running; at 0s 404 once`)
	server.Add("c", `running`)
	const both = "filter.task_ids=a&filter.task_ids=b&filter.task_ids=none&filter.task_ids=a"
	ids, total, body := arkList(t, c, server, both)
	assert.Equal(t, []string{"a"}, ids, "b is not known yet, none never")
	assert.Equal(t, 1, total)
	assert.Contains(t, body, `"running"`)
	ids, total, body = arkList(t, c, server, both)
	assert.ElementsMatch(t, []string{"a", "b"}, ids)
	assert.Equal(t, 2, total)
	assert.Contains(t, body, `"queued"`, "the look before has used up the first entry")
	ids, total, _ = arkList(t, c, server, both+"&page_size=1&page_num=2")
	assert.Len(t, ids, 1)
	assert.Equal(t, 2, total)

	assert.Len(t, server.Looks("a"), 3)
	assert.Len(t, server.Looks("b"), 3)
	assert.Empty(t, server.Looks("c"))
	assert.Equal(t, 3, server.Stats().Lists)
	assert.Equal(t, 1, server.Stats().Faults)
}

// An answer has one status for all.
func TestAListMeetsWhatIsAmissWithOneOfItsJobs(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	server := started(t, loopback.Config{Wire: loopback.Ark(), Clock: clock})
	c := client(t)
	server.Add("fine", `running`)
	server.Add("limited", `running; at 0s 429 retry-after 7s once`)
	server.Add("page", `running; at 0s broken html once`)
	server.Add("odd", `running retry-after 9s; at 0s error "odd" once`)
	at := server.URL() + "/api/v3/contents/generations/tasks?filter.task_ids=fine&filter.task_ids="
	for id, status := range map[string]int{"limited": 429, "page": 502, "odd": 500} {
		resp, _ := do(t, c, "GET", at+id, "")
		require.Equal(t, status, resp.StatusCode, id)
		if id == "limited" {
			require.Equal(t, "7", resp.Header.Get("Retry-After"))
		}
		resp, body := do(t, c, "GET", at+id, "")
		require.Equal(t, http.StatusOK, resp.StatusCode, id)
		require.Len(t, field(t, body, "items"), 2)
		if id == "odd" {
			require.Equal(t, "9", resp.Header.Get("Retry-After"), "the longest wait of a part is that of the answer")
		}
	}
}
