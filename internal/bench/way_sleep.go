package main

import "time"

// startSleep is the loop that everybody writes first.
func startSleep(m *meter) way {
	return way{admit: func(id string, first int64) {
		go func() {
			m.sleepUntil(first)
			for {
				m.look(id)
				time.Sleep(m.Interval)
			}
		}()
	}}
}
