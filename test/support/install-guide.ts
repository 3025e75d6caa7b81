import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Pages of docs/operations as the scripts that they contain, and what stands for systemd there. */

export const OPERATIONS = join(import.meta.dir, '../../docs/operations')

/** The shell commands under a heading of a page, block by block. */
export function blocksOf(page: string, heading: string): string[] {
  const text = readFileSync(join(OPERATIONS, page), 'utf8')
  const [, section] = text.split(`\n${heading}\n`)
  const [own = ''] = section?.split(/^#{2,3} /m) ?? []
  return [...own.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, commands = '']) => commands)
}

/** Stands for systemd: the unit's user, environment and folder. */
export const SYSTEMCTL = `#!/bin/bash
set -e
unit=$(ls /{etc,lib}/systemd/system/hopcode.service 2> /dev/null | head -n 1)
of() { sed -n "s/^$1=//p" "$unit"; }
case "$*" in
  'enable --now hopcode' | 'start hopcode')
    user=$(of User)
    mode=$(of StateDirectoryMode)
    install -d -o "$user" -g "$(of Group)" -m "$mode" "/var/lib/$(of StateDirectory)"
    log=/var/log/hopcode.log
    > $log
    set -a; . "$(of EnvironmentFile)"; declare "$(of Environment)"
    setsid setpriv --reuid="$user" --regid="$(of Group)" --clear-groups $(of ExecStart) \\
      < /dev/null >> $log 2>&1 &
    echo $! > /run/hopcode.pid
    # The next command of a person comes later than that of a test.
    while kill -0 $! 2> /dev/null && ! grep -q service.started $log; do sleep 0.05; done ;;
  'stop hopcode')
    kill "$(cat /run/hopcode.pid)" && tail --pid="$(cat /run/hopcode.pid)" -f /dev/null ;;
  'restart postgresql')
    pg_ctlcluster "$(ls /etc/postgresql | grep '[0-9]')" main restart ;;
esac
`

/** Prints the last lines of the service's log. */
export const JOURNALCTL = '#!/bin/sh\ntail -n 20 /var/log/hopcode.log\n'
