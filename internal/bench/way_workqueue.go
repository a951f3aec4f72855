package main

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// startWorkqueue is the heart of a controller: keys that come back later.
func startWorkqueue(m *meter) way {
	queue := workqueue.NewTypedDelayingQueue[string]()
	for range m.workersOr(64) {
		go func() {
			for {
				id, down := queue.Get()
				if down {
					return
				}
				m.look(id)
				queue.AddAfter(id, m.Interval)
				queue.Done(id)
			}
		}()
	}
	return way{admit: func(id string, first int64) { queue.AddAfter(id, time.Duration(first-m.now())) }}
}
