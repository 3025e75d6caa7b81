import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'sqlite',
  schema: ['./src/db/schema.ts', './src/db/qr-schema.ts', './src/db/people-schema.ts'],
  out: './drizzle',
})
