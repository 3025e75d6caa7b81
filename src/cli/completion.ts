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
    .action((shell) => print(SCRIPTS[shell](allNodes(program)).trimEnd()))
}

interface Choice {
  /** A subcommand, a value of an operand, or an option such as `--plan`. */
  word: string
  meaning: string
}

interface OptionChoice extends Choice {
  value?: Value
}

/** The value of an option: one of `oneOf`, the name of a file, or any text. */
interface Value {
  oneOf: readonly string[]
  isFile: boolean
}

interface Node {
  /** ` account create`; empty for the program itself. A space is before each word. */
  path: string
  words: readonly Choice[]
  /** Whether names of files are offered beside the words. */
  hasFiles: boolean
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
    if (!option.required && !option.optional) return [about]
    return [
      { ...about, value: { oneOf: option.argChoices ?? [], isFile: FILE.test(option.flags) } },
    ]
  })
  const hasFiles = command.registeredArguments.some((operand) => FILE.test(operand.name()))
  const node = { path, words, hasFiles, options }
  const rest = command.commands.flatMap((one) => nodesOf(one, `${path} ${one.name()}`))
  return [node, ...rest]
}

/** How operands and values are named that are files. */
const FILE = /\bFILE\b/

/** The commands, and after `help` their names again. */
function allNodes(program: Command): Node[] {
  const nodes = nodesOf(program).filter(({ path }) => path !== ' help')
  const settings = { word: 'settings', meaning: 'list the settings' }
  const groups = nodes.filter(({ path, words }) =>
    words.some(({ word }) => nodes.some((node) => node.path === `${path} ${word}`)),
  )
  const afterHelp = groups.map(({ path, words }) => ({
    path: ` help${path}`,
    words: path === '' ? [...words, settings] : words,
    hasFiles: false,
    options: [],
  }))
  return [...nodes, ...afterHelp]
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript }

/** A literal of bash and zsh. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const listed = (texts: readonly string[]): string => texts.map(quoted).join(' ')

/** A pattern of `case` for the paths of all commands. */
const anyPath = (nodes: readonly Node[]): string =>
  nodes.flatMap(({ path }) => (path ? quoted(path) : [])).join('|')

/** The options that have a value, as the branches of `case "$at $option"`. */
function valueCases(
  nodes: readonly Node[],
  { oneOf, files }: { oneOf: (values: readonly string[]) => string; files: string },
): string {
  const branches = nodes.flatMap(({ path, options }) =>
    options.flatMap(({ word, value }) => {
      if (!value) return []
      const then = value.oneOf.length > 0 ? oneOf(value.oneOf) : value.isFile ? files : ':'
      return `    ${quoted(`${path} ${word}`)}) ${then}; return ;;`
    }),
  )
  return branches.join('\n')
}

/** Also for bash 3.2, which macOS has: it cannot set options during a completion. */
function bashScript(nodes: readonly Node[]): string {
  const branches = nodes.map(({ path, words, hasFiles, options }) => {
    const listOf = (choices: readonly Choice[]) => quoted(choices.map(({ word }) => word).join(' '))
    const files = hasFiles ? ' files=1' : ''
    return `    ${quoted(path)}) words=${listOf(words)} options=${listOf(options)}${files} ;;`
  })
  const oneOf = (values: readonly string[]) => `_hopcode_words ${quoted(values.join(' '))}`
  return `# Completion of hopcode for bash.
_hopcode_words() {
  COMPREPLY=($(compgen -W "$1" -- "$current"))
}
_hopcode_files() {
  local name
  while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -f -- "$current")
  compopt -o filenames 2>/dev/null
}
_hopcode() {
  local current="\${COMP_WORDS[COMP_CWORD]}" option="\${COMP_WORDS[COMP_CWORD-1]}"
  local at='' words='' options='' files='' i
  COMPREPLY=()
  # bash makes three words of --plan=pro.
  if [[ $current == = ]]; then current=''
  elif [[ $option == = ]]; then option="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
      ${anyPath(nodes)}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at $option" in
${valueCases(nodes, { oneOf, files: '_hopcode_files' })}
  esac
  case "$at" in
${branches.join('\n')}
  esac
  if [[ $current == -* ]]; then _hopcode_words "$options"; return; fi
  _hopcode_words "$words"
  if [[ $files ]]; then _hopcode_files; fi
}
complete -F _hopcode hopcode
`
}

function zshScript(nodes: readonly Node[]): string {
  const described = (choices: readonly Choice[]) =>
    listed(choices.map(({ word, meaning }) => `${word}:${meaning}`))
  const branches = nodes.map(
    ({ path, words, hasFiles, options }) =>
      `    ${quoted(path)})
      words_here=(${described(words)})
      options_here=(${described(options)})${hasFiles ? '\n      files_here=1' : ''} ;;`,
  )
  const oneOf = (values: readonly string[]) => `compadd -- ${listed(values)}`
  return `#compdef hopcode
_hopcode() {
  local at='' files_here='' i option="\${words[CURRENT-1]}"
  local -a words_here options_here
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
      ${anyPath(nodes)}) at="$at \${words[i]}" ;;
    esac
  done
  if [[ "\${words[CURRENT]}" == --*=* ]]; then
    option="\${words[CURRENT]%%=*}"
    compset -P '*='
  fi
  case "$at $option" in
${valueCases(nodes, { oneOf, files: '_files' })}
  esac
  case "$at" in
${branches.join('\n')}
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then
    _describe -o option options_here
    return
  fi
  ((\${#words_here})) && _describe command words_here
  [[ -n "$files_here" ]] && _files
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
  const flagsOf = ({ oneOf, isFile }: Value) =>
    oneOf.length > 0 ? ` -x -a ${literal(oneOf.join(' '))}` : isFile ? ' -rF' : ' -x'
  const lines = nodes.flatMap(({ path, words, hasFiles, options }) => {
    const start = `complete -c hopcode -n ${literal(`__hopcode_at ${literal(path)}`)}`
    return [
      `${start}${hasFiles ? ' -F' : ' -f'}`,
      ...words.map(({ word, meaning }) => `${start} -a ${word} -d ${literal(meaning)}`),
      ...options.map(({ word, meaning, value }) => {
        const flags = value ? flagsOf(value) : ''
        return `${start} -l ${word.slice(2)}${flags} -d ${literal(meaning)}`
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
