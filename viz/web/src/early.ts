// First script of the page: it does what takes time and needs few bytes, while the other scripts load.

import "./early_socket"; // connects to the viewer's server
import "./canvas"; // asks the browser for its graphics processor
