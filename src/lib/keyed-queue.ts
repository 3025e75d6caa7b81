/** Runs the jobs of each key one after another, and those of different keys at the same time. */
export class KeyedQueue<Key> {
  /** The latest job of each key that has one running or waiting. */
  readonly #latest = new Map<Key, Promise<unknown>>()

  /** Returns the job's result. Throws the job's error. */
  async run<Result>(key: Key, job: () => Promise<Result>): Promise<Result> {
    const earlier = this.#latest.get(key)
    const own = earlier ? earlier.then(job, job) : job()
    this.#latest.set(key, own)
    try {
      return await own
    } finally {
      if (this.#latest.get(key) === own) this.#latest.delete(key)
    }
  }
}
