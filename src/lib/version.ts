import manifest from '../../package.json' with { type: 'json' }

/** The release, as in package.json. */
export const VERSION: string = manifest.version
