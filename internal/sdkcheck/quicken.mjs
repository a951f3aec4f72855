// quicken makes waits of seconds last 40 times less, for SDKs that fix the pace of
// their looks. Limits of a minute and more stay as they are.
export const quicken = () => {
  const wait = globalThis.setTimeout;
  globalThis.setTimeout = (f, ms, ...rest) => wait(f, ms >= 1_000 && ms < 60_000 ? ms / 40 : ms, ...rest);
};
