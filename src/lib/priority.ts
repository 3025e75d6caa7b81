import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/**
 * Who goes first where threads share a core: the one that answers redirects. On Linux alone, where
 * threads have priorities of their own; elsewhere, or where it is not allowed, nothing changes.
 */

/** For what somebody waits for, though no visitor: beside a busy thread, a quarter of a core. */
export const giveWay = (): void => becomeNice(5)

/** For what can wait, in the service and in programs beside it: a thirtieth of a core. */
export const stayBehind = (): void => becomeNice(15)

/** No thread becomes less nice than it was. */
function becomeNice(nice: number): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, Math.max(nice, getPriority(thread)))
  } catch {
    // Only a matter of speed.
  }
}
