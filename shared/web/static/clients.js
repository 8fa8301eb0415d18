// Ready-to-paste configuration for MCP clients. Keys are asked for by the client, or stand in as names to fill in:
// nothing secret is written here, since what is pasted is often committed.

const TOKEN_HEADER = 'X-MCP-Auth-Token';
const KEY_HEADER = 'x-functions-key';
const json = (value) => JSON.stringify(value, null, 2);

/** The MCP endpoint of an app at `origin`. */
export const endpointOf = (origin) => `${origin}/runtime/webhooks/mcp`;

/**
 * `[{name, file, text, notes}]`. `key`: whether the endpoint wants the host's key (it does on Azure);
 * `token`: whether the owner's token is to be sent.
 */
export function clientConfigs(origin, { name = 'toolbox', key = true, token = true } = {}) {
  const url = endpointOf(origin);
  const wanted = [
    key && { header: KEY_HEADER, input: 'toolbox-key', env: 'TOOLBOX_KEY', words: 'System key mcp_extension of the function app' },
    token && { header: TOKEN_HEADER, input: 'toolbox-token', env: 'TOOLBOX_TOKEN', words: 'Your MCP access token' },
  ].filter(Boolean);
  const headers = (write) => (wanted.length ? { headers: Object.fromEntries(wanted.map((one) => [one.header, write(one)])) } : {});
  const plain = url.startsWith('http:');
  return [
    {
      name: 'VS Code',
      file: '.vscode/mcp.json',
      text: json({
        ...(wanted.length && { inputs: wanted.map((one) => ({ type: 'promptString', id: one.input, description: one.words, password: true })) }),
        servers: { [name]: { type: 'http', url, ...headers((one) => `\${input:${one.input}}`) } },
      }),
      notes: 'VS Code asks for the values once and keeps them encrypted.',
    },
    {
      name: 'Claude Desktop',
      file: 'claude_desktop_config.json (Settings, Developer, Edit Config)',
      // Its configuration file starts programs only; mcp-remote is one that speaks to a server over HTTP. Without
      // a space after the colon: on Windows an argument with one would be torn apart.
      text: json({
        mcpServers: {
          [name]: {
            command: 'npx',
            args: ['-y', 'mcp-remote', url, '--transport', 'http-only', ...(plain ? ['--allow-http'] : []),
              ...wanted.flatMap((one) => ['--header', `${one.header}:\${${one.env}}`])],
            ...(wanted.length && { env: Object.fromEntries(wanted.map((one) => [one.env, `<${one.words}>`])) }),
          },
        },
      }),
      notes: 'Needs Node.js. Fill in the values under env, then restart Claude Desktop.',
    },
    {
      name: 'Cursor',
      file: '.cursor/mcp.json, or ~/.cursor/mcp.json for all projects',
      text: json({ mcpServers: { [name]: { url, ...headers((one) => `\${env:${one.env}}`) } } }),
      notes: wanted.length ? `Set ${wanted.map((one) => one.env).join(' and ')} in the environment that Cursor is started from.` : 'Restart Cursor afterwards.',
    },
    {
      name: 'MCP Inspector',
      file: 'a terminal',
      text: ['npx @modelcontextprotocol/inspector', '--transport http', `--server-url ${url}`,
        ...wanted.map((one) => `--header "${one.header}: $${one.env}"`)].join(' \\\n  '),
      notes: 'Needs Node.js. With --cli and --method tools/list it prints instead of opening a page.',
    },
  ];
}
