package main

import "time"

// timedJob is a job with a timer of its own, which is set anew after each look.
type timedJob struct {
	m     *meter
	id    string
	timer *time.Timer
}

func (j *timedJob) look() {
	j.m.look(j.id)
	j.timer.Reset(j.m.Interval)
}

func startAfterFunc(m *meter) way {
	return way{admit: func(id string, first int64) {
		j := &timedJob{m: m, id: id}
		j.timer = time.AfterFunc(time.Hour, j.look)
		j.timer.Reset(time.Duration(first - m.now())) // j.timer is set before it fires
	}}
}
