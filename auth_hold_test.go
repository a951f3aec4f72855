package jobpoll

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestJobsThatEndWhileCredentialsStayRefusedLeaveNothing(t *testing.T) {
	p, err := New(Config{Routes: []Route{{
		Name: "r", Checker: CheckerFunc(func(context.Context, Job) (Report, error) { return Report{}, nil }),
	}}})
	require.NoError(t, err)
	now := StampOf(t0)
	list := &p.routes["r"].auth.waitList
	for i := range 20_000 {
		r := p.admit(p.prepare(Job{Route: "r", ID: fmt.Sprint(i)}, now), false)
		p.keepBack(r)
		if i%100 != 0 {
			p.dropRecord(r)
		}
	}
	assert.Equal(t, 200, p.jobs.Len())
	assert.LessOrEqual(t, len(*list), 2*200+1025)
	kept := 0
	for _, h := range *list {
		if p.get(h) != nil {
			kept++
		}
	}
	assert.Equal(t, 200, kept)
}
