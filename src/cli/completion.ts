import { Argument, type Command, type CommandUnknownOpts } from '@commander-js/extra-typings'
import { print } from '../lib/log.ts'

const HELP = `
bash, in ~/.bashrc:   eval "$(hopcode completion bash)"
zsh, in ~/.zshrc:     eval "$(hopcode completion zsh)"   (after compinit)
fish:                 hopcode completion fish > ~/.config/fish/completions/hopcode.fish
`

/** Add it last: it completes the commands that the program has when it runs. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .summary('print a script that completes commands and options in a shell')
    .description('Print a script that completes commands and options in a shell.')
    .addArgument(new Argument('<SHELL>', 'the shell').choices(['bash', 'zsh', 'fish'] as const))
    .addHelpText('after', HELP)
    .action((shell) => print(SCRIPTS[shell](nodesOf(program)).trimEnd()))
}

interface Choice {
  /** A subcommand, a value of an operand, or an option such as `--plan`. */
  word: string
  meaning: string
}

interface OptionChoice extends Choice {
  /** Absent: the option has no value. Empty: any text or file. */
  values?: readonly string[]
}

interface Node {
  /** ` account create`; empty for the program itself. A space is before each word. */
  path: string
  words: readonly Choice[]
  options: readonly OptionChoice[]
}

function nodesOf(command: CommandUnknownOpts, path = ''): Node[] {
  const help = command.createHelp()
  const words = [
    ...command.commands.map((one) => ({
      word: one.name(),
      meaning: one.summary() || one.description(),
    })),
    ...command.registeredArguments.flatMap(({ argChoices = [], description }) =>
      argChoices.map((word) => ({ word, meaning: description })),
    ),
  ]
  const options = help.visibleOptions(command).flatMap((option): OptionChoice[] => {
    if (option.long == null) return []
    const about = { word: option.long, meaning: option.description }
    const hasValue = option.required || option.optional
    return [hasValue ? { ...about, values: option.argChoices ?? [] } : about]
  })
  const node = { path, words, options }
  const rest = command.commands.flatMap((one) => nodesOf(one, `${path} ${one.name()}`))
  return [node, ...rest]
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript }

/** A literal of bash and zsh. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const listed = (texts: readonly string[]): string => texts.map(quoted).join(' ')

/** A pattern of `case` for the paths of all commands. */
const anyPath = (nodes: readonly Node[]): string =>
  nodes.flatMap(({ path }) => (path ? quoted(path) : [])).join('|')

/** The options that have a value, as the branches of `case "$at $previous"`. */
function valueCases(
  nodes: readonly Node[],
  { oneOf, anyText }: { oneOf: (values: readonly string[]) => string; anyText: string },
): string {
  const branches = nodes.flatMap(({ path, options }) =>
    options.flatMap(({ word, values }) => {
      if (!values) return []
      const then = values.length > 0 ? oneOf(values) : anyText
      return `    ${quoted(`${path} ${word}`)}) ${then}; return ;;`
    }),
  )
  return branches.join('\n')
}

/** Where no word matches, bash completes names of files. */
function bashScript(nodes: readonly Node[]): string {
  const words = nodes.map(({ path, words, options }) => {
    const all = [...words, ...options].map(({ word }) => word).join(' ')
    return `    ${quoted(path)}) words=${quoted(all)} ;;`
  })
  const oneOf = (values: readonly string[]) =>
    `COMPREPLY=($(compgen -W ${quoted(values.join(' '))} -- "$current"))`
  return `# Completion of hopcode for bash.
_hopcode() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local at='' words='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
      ${anyPath(nodes)}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at $previous" in
${valueCases(nodes, { oneOf, anyText: ':' })}
  esac
  case "$at" in
${words.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _hopcode hopcode
`
}

function zshScript(nodes: readonly Node[]): string {
  const described = (choices: readonly Choice[]) =>
    listed(choices.map(({ word, meaning }) => `${word}:${meaning}`))
  const branches = nodes.map(
    ({ path, words, options }) =>
      `    ${quoted(path)})
      words_here=(${described(words)})
      options_here=(${described(options)}) ;;`,
  )
  const oneOf = (values: readonly string[]) => `compadd -- ${listed(values)}`
  return `#compdef hopcode
_hopcode() {
  local at='' i
  local -a words_here options_here
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
      ${anyPath(nodes)}) at="$at \${words[i]}" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${valueCases(nodes, { oneOf, anyText: '_files' })}
  esac
  case "$at" in
${branches.join('\n')}
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then
    _describe -o option options_here
  elif ((\${#words_here})); then
    _describe command words_here
  else
    _files
  fi
}
if [[ "\${funcstack[1]}" == _hopcode ]]; then
  _hopcode "$@"
else
  compdef _hopcode hopcode
fi
`
}

function fishScript(nodes: readonly Node[]): string {
  const literal = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`
  const lines = nodes.flatMap(({ path, words, options }) => {
    const start = `complete -c hopcode -n ${literal(`__hopcode_at ${literal(path)}`)}`
    return [
      ...words.map(({ word, meaning }) => `${start} -f -a ${word} -d ${literal(meaning)}`),
      ...options.map(({ word, meaning, values }) => {
        const oneOf = values?.length ? ` -x -a ${literal(values.join(' '))}` : ' -r'
        return `${start} -l ${word.slice(2)}${values ? oneOf : ''} -d ${literal(meaning)}`
      }),
    ]
  })
  const paths = nodes.flatMap(({ path }) => (path ? literal(path) : []))
  return `# Completion of hopcode for fish.
function __hopcode_at
  set -l at ''
  for word in (commandline -opc)[2..-1]
    if contains -- "$at $word" ${paths.join(' ')}
      set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
${lines.join('\n')}
`
}
