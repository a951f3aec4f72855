module github.com/jobpoll/jobpoll/internal/bench

go 1.25.0

replace github.com/jobpoll/jobpoll => ../..

require (
	github.com/Azure/azure-sdk-for-go/sdk/azcore v1.20.0
	github.com/cenkalti/backoff/v4 v4.3.0
	github.com/jobpoll/jobpoll v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
	golang.org/x/time v0.15.0
	k8s.io/apimachinery v0.34.2
	k8s.io/client-go v0.34.2
)

require (
	github.com/Azure/azure-sdk-for-go/sdk/internal v1.11.2 // indirect
	github.com/go-logr/logr v1.4.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.43.0 // indirect
	golang.org/x/text v0.28.0 // indirect
	k8s.io/klog/v2 v2.130.1 // indirect
	k8s.io/utils v0.0.0-20250604170112-4c0f3b243397 // indirect
)
