// Package provider asks video providers about their jobs over HTTP. It has a
// kit, which any adapter can be built on, and adapters for some providers:
//
//	fal          NewFal        Checker, Fetcher, Canceler, Refresher
//	Replicate    NewReplicate  Checker, Canceler, Refresher, Reconciler
//	Atlas Cloud  NewAtlas      Checker, Refresher
//	Runway       NewRunway     Checker, Canceler, Refresher
//	Luma         NewLuma       Checker, Refresher, Reconciler
//	OpenAI       NewOpenAI     Checker, Refresher, Reconciler: the shape, at gateways
//	Kling        NewKling      Checker, Refresher, Reconciler
//	             NewKling3     Checker, BatchChecker, Refresher, Reconciler
//	MiniMax      NewMiniMax    Checker, Fetcher, Refresher
//	             NewMiniMaxV2  Checker, BatchChecker, Canceler, Refresher, Reconciler: its second API
//	Veo          NewGeminiVeo  Checker, Refresher
//	             NewVertexVeo  Checker, Refresher
//	DashScope    NewDashScope  Checker, Canceler, Refresher
//	Ark          NewArk        Checker, BatchChecker, Canceler, Refresher, Reconciler
//	WaveSpeed    NewWaveSpeed  Checker, Refresher
//	xAI          NewXAI        Checker, Refresher
//	Stability    NewStability  Checker, Refresher
//
// Two are for conventions that many services keep: NewAzureLRO (Checker, Refresher)
// and NewGoogleLRO (Checker, Canceler, Refresher). What could not be read in an
// artefact of the provider's own is said in the doc of each adapter.
//
// An adapter starts a job by Submit, one POST that is never repeated, and is the
// Checker of a jobpoll.Route:
//
//	replicate, err := provider.NewReplicate(provider.Config{Credentials: provider.Secret(key)})
//	…
//	p, err := jobpoll.New(jobpoll.Config{Routes: []jobpoll.Route{{Name: "replicate", Checker: replicate}}})
//	…
//	job, _, err := replicate.Submit(ctx, provider.Order{Model: "owner/name", Input: input})
//	…
//	job.Route = "replicate"
//	out, err := p.Wait(ctx, job)
//	…
//	urls := provider.URLs(out.Report.Output)
//
// # Webhooks
//
// ReplicateNotice, FalNotice, AtlasNotice, LumaNotice, KlingNotice, MiniMaxNotice,
// MiniMaxV2Notice, ArkNotice and WaveSpeedNotice read what those providers send to
// Order.Webhook, by the same tables as a look: each is a Parser of package webhook,
// which verifies it first. OpenAINotice and GeminiNotice read events that name a job and no more.
//
// # Lists
//
// Ark, Kling3 and MiniMaxV2 look at many jobs in one call, by the list that the
// provider has: an item is read as the answer to a look is, each by itself, and a
// job that is not in the list is not in the results. To the engine that is no more
// than a reason to look at that job by Check. The other providers have no list that
// takes ids.
//
// # The kit
//
// A Client does what every adapter has to do, and what each gets wrong in a way
// of its own: it reads bodies to a bound and closes them so that connections are
// used again, checks that what came is JSON, reads the provider's wait, keeps
// credentials on the hosts that they are for, follows no redirect to another
// host, and renews credentials once for all jobs: after a refusal, and before
// they run out (Config.Tokens). What is left to an adapter is a struct of the
// answer, a jobpoll.Words of its states, and a Report made of the two; the example of Client is one, with Submit, and passes
// polltest.TestChecker (go doc does not show it: it is in
// provider/example_test.go). Download gets a file that is given only with the credentials.
// Each adapter shows the Client that it calls by.
//
// Errors are *jobpoll.CheckError. What says nothing of the job (an HTML page, an
// empty or cut body, an error inside a 200) is transient and carries the begin
// of the body as evidence. No error and no text that this package makes holds a
// credential, also where the provider sends it back.
//
// # Plain HTTP
//
// A BaseURL of http is taken, for tests and for relays on the own machine. The
// credentials then go over the wire as they are.
package provider
