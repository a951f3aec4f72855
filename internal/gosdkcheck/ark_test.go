package gosdkcheck

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/volcengine/volcengine-go-sdk/service/arkruntime"
	"github.com/volcengine/volcengine-go-sdk/service/arkruntime/model"

	"github.com/jobpoll/jobpoll/polltest/loopback"
)

func aimArk(t *testing.T, script string) (*loopback.Server, *arkruntime.Client) {
	server := aim(t, loopback.Ark(), script)
	return server, arkClient(server, key)
}

func arkClient(server *loopback.Server, credential string) *arkruntime.Client {
	return arkruntime.NewClientWithApiKey(credential, arkruntime.WithBaseUrl(server.URL()+"/api/v3"), arkruntime.WithRetryTimes(1))
}

func ptr[T any](v T) *T { return &v }

func arkCreate(t *testing.T, c *arkruntime.Client) string {
	created, err := c.CreateContentGenerationTask(limit(t), model.CreateContentGenerationTaskRequest{
		Model:   "seedance-1-0-pro-250528",
		Content: []*model.CreateContentGenerationContentItem{{Type: model.ContentGenerationContentItemTypeText, Text: ptr("a cat")}},
	})
	require.NoError(t, err)
	return created.ID
}

// arkUntil looks until the task has ended; the client has no helper that does.
func arkUntil(t *testing.T, c *arkruntime.Client, id string) (model.GetContentGenerationTaskResponse, []string) {
	var seen []string
	for {
		task, err := c.GetContentGenerationTask(limit(t), model.GetContentGenerationTaskRequest{ID: id})
		require.NoError(t, err)
		seen = append(seen, task.Status)
		if task.Status != model.StatusQueued && task.Status != model.StatusRunning {
			return task, slices.Compact(seen)
		}
	}
}

func arkToldStatus(t *testing.T, err error, status int, code string) {
	t.Helper()
	var e *model.APIError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, status, e.HTTPStatusCode)
	assert.Equal(t, code, e.Code)
	assert.NotEmpty(t, e.Message)
}

func TestTheClientOfArkSeesATaskToItsEnd(t *testing.T) {
	_, c := aimArk(t, succeeds)
	id := arkCreate(t, c)
	task, seen := arkUntil(t, c, id)
	assert.Equal(t, []string{model.StatusQueued, model.StatusRunning, model.StatusSucceeded}, seen)
	assert.Equal(t, id, task.ID)
	assert.Equal(t, "seedance-1-0-pro-250528", task.Model)
	assert.Regexp(t, `^https://.*\.mp4$`, task.Content.VideoURL)
	assert.EqualValues(t, 6, task.UpdatedAt-task.CreatedAt)
	assert.Nil(t, task.Error)
}

func TestATaskOfArkThatFailedSaysWhy(t *testing.T) {
	for _, c := range []struct{ script, status, code string }{
		{fails, model.StatusFailed, "InternalServiceError"},
		{rejected, model.StatusFailed, "InvalidParameter"},
		{filtered, model.StatusFailed, "OutputVideoSensitiveContentDetected"},
		{canceled, model.StatusCancelled, ""},
		{expires, "expired", ""}, // this version has no name for it
	} {
		_, client := aimArk(t, c.script)
		id := arkCreate(t, client)
		task, _ := arkUntil(t, client, id)
		assert.Equal(t, c.status, task.Status)
		assert.Empty(t, task.Content)
		listed, err := client.ListContentGenerationTasks(limit(t), model.ListContentGenerationTasksRequest{
			Filter: &model.ListContentGenerationTasksFilter{TaskIDs: []*string{&id}},
		})
		require.NoError(t, err)
		require.Len(t, listed.Items, 1)
		assert.Equal(t, c.status, listed.Items[0].Status)
		if c.code == "" {
			continue
		}
		require.NotNil(t, task.Error)
		assert.Equal(t, c.code, task.Error.Code)
		assert.NotEmpty(t, task.Error.Message)
		assert.Equal(t, task.Error, listed.Items[0].FailureReason)
	}
}

// The second try of this version comes at once; a third one a second later.
func TestALookThatIsRefusedIsRepeatedByTheClientOfArk(t *testing.T) {
	for _, script := range []string{busy, `queued; at 2s 500 once; at 4s succeeded`} {
		server, c := aimArk(t, script)
		task, _ := arkUntil(t, c, arkCreate(t, c))
		assert.Equal(t, model.StatusSucceeded, task.Status)
		assert.Equal(t, 1, server.Stats().Faults)
	}
}

func TestErrorsOfArkAreToldByStatus(t *testing.T) {
	server, c := aimArk(t, refused)
	id := arkCreate(t, c)
	_, err := c.GetContentGenerationTask(limit(t), model.GetContentGenerationTaskRequest{ID: id})
	arkToldStatus(t, err, http.StatusTooManyRequests, "RateLimitExceeded")
	_, err = c.GetContentGenerationTask(limit(t), model.GetContentGenerationTaskRequest{ID: "cgt-none"})
	arkToldStatus(t, err, http.StatusNotFound, "ResourceNotFound")
	_, err = arkClient(server, wrong).GetContentGenerationTask(limit(t), model.GetContentGenerationTaskRequest{ID: id})
	arkToldStatus(t, err, http.StatusUnauthorized, "AuthenticationError")
}

func TestPagesOfArkHaveAllTasks(t *testing.T) {
	server, c := aimArk(t, goesOn)
	for range 5 {
		arkCreate(t, c)
	}
	want := server.Jobs()
	slices.Reverse(want) // newest first
	var got []string
	for page := 1; len(got) < len(want); page++ {
		listed, err := c.ListContentGenerationTasks(limit(t), model.ListContentGenerationTasksRequest{PageNum: &page, PageSize: ptr(2)})
		require.NoError(t, err)
		require.NotEmpty(t, listed.Items)
		assert.EqualValues(t, 5, listed.Total)
		for _, item := range listed.Items {
			got = append(got, item.ID)
		}
	}
	assert.Equal(t, want, got)

	some := []*string{&want[1], ptr("cgt-none"), &want[4]}
	listed, err := c.ListContentGenerationTasks(limit(t), model.ListContentGenerationTasksRequest{
		Filter: &model.ListContentGenerationTasksFilter{TaskIDs: some},
	})
	require.NoError(t, err)
	require.Len(t, listed.Items, 2)
	assert.ElementsMatch(t, []string{want[1], want[4]}, []string{listed.Items[0].ID, listed.Items[1].ID})
}

func TestATaskOfArkThatWaitsCanBeCanceledAndOneThatRunsCannot(t *testing.T) {
	_, c := aimArk(t, `queued; at 3s running; at 7s succeeded`)
	waits, runs := arkCreate(t, c), arkCreate(t, c)
	require.NoError(t, c.DeleteContentGenerationTask(limit(t), model.DeleteContentGenerationTaskRequest{ID: waits}))
	task, _ := arkUntil(t, c, waits)
	assert.Equal(t, model.StatusCancelled, task.Status)

	for task.Status != model.StatusRunning {
		var err error
		task, err = c.GetContentGenerationTask(limit(t), model.GetContentGenerationTaskRequest{ID: runs})
		require.NoError(t, err)
	}
	err := c.DeleteContentGenerationTask(limit(t), model.DeleteContentGenerationTaskRequest{ID: runs})
	arkToldStatus(t, err, http.StatusBadRequest, "InvalidAction.RunningTaskDeletion")

	arkUntil(t, c, runs)
	require.NoError(t, c.DeleteContentGenerationTask(limit(t), model.DeleteContentGenerationTaskRequest{ID: runs}))
	_, err = c.GetContentGenerationTask(limit(t), model.GetContentGenerationTaskRequest{ID: runs})
	arkToldStatus(t, err, http.StatusNotFound, "ResourceNotFound")
}
