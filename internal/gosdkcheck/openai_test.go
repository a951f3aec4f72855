package gosdkcheck

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest/loopback"
)

func aimOpenAI(t *testing.T, script string) (*loopback.Server, openai.VideoService) {
	server := aim(t, loopback.OpenAI(), script)
	return server, openai.NewVideoService(option.WithBaseURL(server.URL()+"/v1"), option.WithAPIKey(key))
}

var video = openai.VideoNewParams{Prompt: "a cat", Model: openai.VideoModelSora2, Seconds: openai.VideoSeconds8}

func statusOfOpenAI(t *testing.T, err error) int {
	t.Helper()
	var e *openai.Error
	require.ErrorAs(t, err, &e)
	return e.StatusCode
}

func TestNewAndPollOfOpenAIWaitsForTheVideo(t *testing.T) {
	server, videos := aimOpenAI(t, succeeds)
	done, err := videos.NewAndPoll(limit(t), video, 1)
	require.NoError(t, err)
	assert.Equal(t, openai.VideoStatusCompleted, done.Status)
	assert.EqualValues(t, 100, done.Progress)
	assert.Equal(t, "a cat", done.Prompt)
	assert.Equal(t, openai.VideoSeconds8, done.Seconds)
	assert.Equal(t, openai.VideoModelSora2, done.Model)
	assert.EqualValues(t, 6, done.CompletedAt-done.CreatedAt)
	assert.Empty(t, done.JSON.ExtraFields)
	assert.Greater(t, server.Stats().Statuses, 2)

	answer, err := videos.DownloadContent(limit(t), done.ID, openai.VideoDownloadContentParams{})
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.NotEmpty(t, content)
	assert.Equal(t, "video/mp4", answer.Header.Get("Content-Type"))
}

func TestAVideoOfOpenAIHasAllThatItsClientDemands(t *testing.T) {
	_, videos := aimOpenAI(t, succeeds)
	image := video
	image.InputReference = openai.File(strings.NewReader("the image"), "a.png", "image/png")
	for _, order := range []openai.VideoNewParams{video, image} {
		got, err := videos.New(limit(t), order)
		require.NoError(t, err)
		seen := []openai.VideoStatus{got.Status}
		for got.Status == openai.VideoStatusQueued || got.Status == openai.VideoStatusInProgress {
			got, err = videos.Get(limit(t), got.ID)
			require.NoError(t, err)
			seen = append(seen, got.Status)
			for name, valid := range map[string]bool{
				"id": got.JSON.ID.Valid(), "created_at": got.JSON.CreatedAt.Valid(), "model": got.JSON.Model.Valid(),
				"object": got.JSON.Object.Valid(), "progress": got.JSON.Progress.Valid(), "prompt": got.JSON.Prompt.Valid(),
				"seconds": got.JSON.Seconds.Valid(), "size": got.JSON.Size.Valid(), "status": got.JSON.Status.Valid(),
			} {
				assert.True(t, valid, "%s of %s", name, got.RawJSON())
			}
		}
		assert.Equal(t, []openai.VideoStatus{"queued", "in_progress", "completed"}, slices.Compact(seen))
	}
}

func TestAVideoOfOpenAIThatFailedSaysWhy(t *testing.T) {
	for _, c := range []struct{ script, code, message string }{
		{fails, "video_generation_failed", "out of memory"},
		{filtered, "moderation_blocked", "unsafe"},
		{expires, "timeout", "the job took too long"},
	} {
		_, videos := aimOpenAI(t, c.script)
		done, err := videos.NewAndPoll(limit(t), video, 1)
		require.NoError(t, err)
		assert.Equal(t, openai.VideoStatusFailed, done.Status)
		assert.Equal(t, c.code, done.Error.Code)
		assert.Equal(t, c.message, done.Error.Message)
	}
}

// "cancelled" is a word of gateways'.
func TestAWordThatTheClientOfOpenAIDoesNotKnowEndsItsWait(t *testing.T) {
	_, videos := aimOpenAI(t, canceled)
	_, err := videos.NewAndPoll(limit(t), video, 1)
	assert.ErrorContains(t, err, "invalid video status during polling: received cancelled")
}

func TestALookThatIsRefusedIsRepeatedByTheClientOfOpenAI(t *testing.T) {
	for _, script := range []string{busy, `queued; at 2s 503 retry-after 20ms once; at 4s succeeded`} {
		server, videos := aimOpenAI(t, script)
		done, err := videos.NewAndPoll(limit(t), video, 1)
		require.NoError(t, err)
		assert.Equal(t, openai.VideoStatusCompleted, done.Status)
		assert.Equal(t, 1, server.Stats().Faults)
	}
}

func TestErrorsOfOpenAIAreToldByStatus(t *testing.T) {
	server, videos := aimOpenAI(t, refused)
	got, err := videos.New(limit(t), video)
	require.NoError(t, err)
	_, err = videos.Get(limit(t), got.ID, option.WithMaxRetries(0))
	assert.Equal(t, http.StatusTooManyRequests, statusOfOpenAI(t, err))
	var e *openai.Error
	require.True(t, errors.As(err, &e))
	assert.Equal(t, "rate_limit_exceeded", e.Code)

	_, err = videos.Get(limit(t), "video_none")
	assert.Equal(t, http.StatusNotFound, statusOfOpenAI(t, err))
	_, err = videos.DownloadContent(limit(t), got.ID, openai.VideoDownloadContentParams{})
	assert.Equal(t, http.StatusNotFound, statusOfOpenAI(t, err))
	_, err = videos.New(limit(t), video, option.WithAPIKey(wrong))
	assert.Equal(t, http.StatusUnauthorized, statusOfOpenAI(t, err))
	assert.Equal(t, 1, server.Stats().Accepted)
}

func TestPagesOfOpenAIAreFollowedToTheEnd(t *testing.T) {
	server, videos := aimOpenAI(t, succeeds)
	for range 7 {
		_, err := videos.New(limit(t), video)
		require.NoError(t, err)
	}
	want := server.Jobs()
	slices.Reverse(want) // newest first
	pages := videos.ListAutoPaging(limit(t), openai.VideoListParams{Limit: param.NewOpt[int64](3)})
	var ids []string
	for pages.Next() {
		ids = append(ids, pages.Current().ID)
	}
	require.NoError(t, pages.Err())
	assert.Equal(t, want, ids)
	assert.GreaterOrEqual(t, server.Stats().Lists, 3)
}

func TestAVideoOfOpenAIThatIsDeletedIsNotKnown(t *testing.T) {
	_, videos := aimOpenAI(t, goesOn)
	got, err := videos.New(limit(t), video)
	require.NoError(t, err)
	gone, err := videos.Delete(limit(t), got.ID)
	require.NoError(t, err)
	assert.True(t, gone.Deleted)
	assert.Equal(t, got.ID, gone.ID)
	_, err = videos.Get(limit(t), got.ID)
	assert.Equal(t, http.StatusNotFound, statusOfOpenAI(t, err))
}
