"""Whether an operation reads, writes or destroys follows from its method, and from what its document says of it."""

from __future__ import annotations

from mcpfactory_codegen.describe.tools import make_api_tools
from mcpfactory_codegen.effects import effect_of, is_idempotent, sounds_like_change, tool_annotations
from mcpfactory_codegen.ir import Api, ApiOperation
from mcpfactory_codegen.naming import name_api
from tests.subtest_table import parametrize_subtests

# what it does, method, path, operationId, summary, description
TRICKY = """
reads    | GET  /books | listBooks | List books
reads    | GET  /books | getDeleted | Deleted books
reads    | GET  /books | list-deletes | Deletes of a book
reads    | GET  /books | | | This endpoint returns the books.
reads    | GET  /updates | list_updates | List updates
reads    | GET  /users/{id} | | Given a user id, return the user
reads    | GET  /me | | Information the user can see
reads    | GET  /health | | Ping the server
reads    | GET  /updates
reads    | GET  /stock | getStock | Ask how many copies there are
reads    | GET  /buckets/{b}#deletemarkers | getDeleteMarkers | Get delete markers
reads    | GET  /orders/{id}/cancel-policy | | Cancel policy
reads    | GET  /orders/{id}/cancel-policy
reads    | GET  /invoices | getInvoices | Get a list of created invoices
reads    | GET  /invoices | | | <p>Returns the invoices that were <b>deleted</b> or updated.</p>
reads    | GET  /meetings/{id}/settings | settingUpdate | Get the settings
reads    | GET  /stops | stopPoints | Gets the stop points
reads    | GET  /imports/{id} | GetImport | Get import
reads    | GET  /releases | releaseNotes
reads    | GET  /apps/installation | apps/get | Get an installation | Enables an app to find its installation.
reads    | GET  /neighbors | list_neighbors | List neighbors | To list them, send a GET request to this address.
reads    | GET  /webinars/{id}/qa | listQA | List questions | The feature allows attendees to ask questions.
reads    | GET  /issues | search/issues-and-pull-requests | Search issues and pull requests
reads    | GET  /delay/{seconds} | | Delay the response
reads    | GET  /gzip | gzip | Gzips a response
writes   | GET  /headers | request_headers | Request Headers
reads    | HEAD /books/{id} | existsBook | Check a book
reads    | OPTIONS /files/content | options_files | Performs a check before an upload
reads    | GET  /#Action=DescribeVolumes | GET_DescribeVolumes | | <p>Describes the volumes.</p>
reads    | GET  /users.info | users_info | | Gets information about a user.
reads    | GET  /Accounts/{Sid}.json | FetchAccount
reads    | POST /books/query | | Query the books
reads    | POST /books/search | searchBooks
reads    | POST /books | books/search | Find books by what they say
reads    | POST /databases/{id}/query | post-database-query | Query a database | Gets a list of the pages of the database.
reads    | POST /points/count | count_points | Count points | Count points which match a filter
reads    | POST /webmasters/v3/sites/{siteUrl}/searchAnalytics/query | webmasters.searchanalytics.query | | Query your data.
reads    | POST /transfer/sweep/get | transferSweepGet | Retrieve a sweep
reads    | POST /paymentMethods | post-paymentMethods | Get a list of available payment methods
reads    | POST /#Action=DescribeVolumes | POST_DescribeVolumes | | <p>Describes the volumes.</p>
reads    | POST /items | BatchGetItem | | The BatchGetItem operation returns the attributes of items.
reads    | POST /getFile | | | Use this method to get basic info about a file.
reads    | POST /me/microsoft.graph.checkObjects | me.checkObjects | Invoke action checkObjects
reads    | POST /{resource}:getPolicy | tables.getPolicy | | Gets the access control policy of a resource.
reads    | POST /#X-Amz-Target=Db_2012.DescribeLimit | DescribeLimit | | Gives a description of the limit.
reads    | GET  /jobs/status | Job_ListPreparationAndReleaseTaskStatus | Lists the status
reads    | POST /skus/ids | SkuIdlist | Retrieve SKU IDs | Receives a list of references and returns the SKU IDs.
reads    | GET  /checks/update | checkUpdate
reads    | POST /checks/update | checkUpdate | Check for an update
reads    | GET  /books | listBooks | List and create books
reads    | GET  /feed | getFeed | Returns items, starting with the newest
reads    | GET  /feed | getFeed | Returns items, updating every hour
reads    | GET  /books | listBooks | Returns the books, ordering them by title
reads    | POST /books/search | searchBooks | Search books, excluding the lost ones
reads    | POST /books | listNewBooks | List new books
reads    | POST /lists | list_archives
reads    | POST /orders | listOrder | List a customer's orders
reads    | POST /jql/match | matchIssues | Check issues against a query
destroys | GET  /books/{id} | removeBook
destroys | GET  /books/{id} | | Deletes a book.
destroys | GET  /books/{id} | | | <p>Deletes a <code>book</code>.</p>
destroys | GET  /books/{id} | | | **[Deprecated]** [Deletes](/x) a book.
destroys | GET  /#Action=TerminateInstances | GET_TerminateInstances | | <p>Shuts down the instances.</p>
destroys | GET  /#Action=DeleteVolume | | | <p>Deletes the volume.</p>
destroys | GET  /tokens/{id} | getToken | Get the token and delete it
writes   | GET  /rides/{id}/cancel
writes   | GET  /mail | sendMail | Send mail
writes   | GET  /logout
writes   | GET  /servers/{id}/start
writes   | GET  /servers/{id}:start
writes   | GET  /messages | getMessages | | Returns the messages and marks them as read.
writes   | GET  /views.update | views_update | | Update an existing view.
writes   | GET  /oauth.access | oauth_access | | Exchanges a code for a token.
writes   | GET  /#Action=RunInstances | GET_RunInstances | | <p>Launches instances.</p>
writes   | GET  /#Action=FrobInstances | GET_FrobInstances | | Frobs instances.
writes   | GET  /users/{id} | getOrCreateUser
writes   | GET  /verify-email | | | Verifies the email address by its token.
writes   | GET  /pods/{name}/exec | connectCoreV1GetNamespacedPodExec | | connect GET requests to exec of Pod
writes   | OPTIONS /proxy/{path} | connectProxy | | connect OPTIONS requests to proxy
writes   | POST /books | addBook | Add a book
writes   | POST /books | createBook
writes   | POST /books
writes   | POST /events | calendar.events.insert | | Creates an event.
writes   | POST /search | searchAndCreate | Search, or create
writes   | POST /saved-searches | savedSearch
writes   | POST /checks | checkCreate
writes   | POST /list/{id} | listUpdate
destroys | POST /query | queryDelete
writes   | POST /updates | fetchUpdates | Fetch and apply updates
writes   | GET  /messages | getMessages | Returns messages, marking them as read
writes   | POST /users/get | getUser | Gets a user, creating it if needed
writes   | POST /users/get | getUser | | Retrieves the user while creating the missing profile.
writes   | POST /items | listItem | List a new item on the marketplace
writes   | POST /items | listItem | List your item for sale
writes   | POST /x | list_archive
writes   | POST /views/console | Views_PostConsoleView | Returns a URL to the console.
writes   | POST /showFooter | showFooter | Show footer | Makes the footer visible for all users.
writes   | POST /tokens | getToken | Get an access token
writes   | POST /uploads | getUploadUrl | Get an upload URL
writes   | POST /estimate | getUpdateEstimate | Get/Update the estimate
writes   | POST /estimates | getEstimates | Get estimates | This API creates an estimate for one vehicle.
writes   | POST /queries | bigquery.jobs.query | | Runs a SQL query.
writes   | POST /checkin | | Check into an item
writes   | POST /comments/read | markAllAsRead
writes   | POST /account | deposit_a_check | Deposit a check
writes   | POST /ReceiveMessage | ReceiveMessage | | Retrieves messages and hides them for a while.
writes   | POST /nodes/{id}/reimage | ComputeNode_Reimage | Reinstalls the system on the specified node.
destroys | POST /messages/{id}/untrash | untrash | | Removes the message from the trash.
destroys | POST /bulk | bulk | Delete many books
destroys | POST /indices/delete | indices-delete
writes   | POST /tasks/{id}:cancel
destroys | POST /items | BatchWriteItem | | Puts or deletes the items.
destroys | PATCH /keys/{id} | revokeKey | Revoke a key
destroys | DELETE /books/{id} | drop
writes   | PUT  /books/{id}
destroys | POST /sql/query | | Query the database with any SQL, including UPDATE and DELETE
writes   | POST /sql/query | | Query the database with any SQL, including INSERT
reads    | POST /sql/query | | Query the database, including archived rows
reads    | GET  /events | listEvents | List events, including DELETE events
writes   | POST /lookup-or-create | | Look up a person; a record is made if none is found
reads    | GET  /search-and-browse | | Search
writes   | GET  /color/0 | light | | Sets color and brightness of the lamp
reads    | GET  /sets | | | Sets of colors and the lamps
writes   | GET  /phones/{id}/ring | | Ring a lost phone
writes   | GET  /orders/{id}/delay | | Delay the order
writes   | GET  /items/{id}/archive | archive_item | Archive Item
writes   | GET  /item | archive_item | Archive Item
writes   | POST /delay/{seconds} | | Delay the response
writes   | GET  /phones/{id} | | Frob the lost phone
reads    | GET  /phones/{id} | getPhone | Frob the lost phone
reads    | GET  /phones | | Accounts the user has muted
reads    | GET  /cables/{id}/trace | | Trace a cable
reads    | GET  /phones | | About the phones
writes   | POST /rockets/count | countDown | Count down and launch
writes   | GET  /rockets/{id} | | Count down and launch
writes   | POST /phones/search | searchPhones | Frob a lost phone
writes   | PUT  /books/search | searchBooks | Search books
writes   | PATCH /books/{id} | getBook
"""


def _operations() -> list[tuple[str, ApiOperation]]:
    rows = []
    for line in TRICKY.strip().splitlines():
        kind, address, name, summary, description = ([part.strip() for part in line.split("|")] + [""] * 3)[:5]
        method, path = address.split()
        rows.append((kind, ApiOperation(method, path, "", name, summary, description)))
    return rows


def test_what_an_operation_does_follows_from_its_method_and_its_words() -> None:
    found = [(effect_of(operation).kind, operation.key, operation.operation_id) for _, operation in _operations()]
    assert found == [(kind, operation.key, operation.operation_id) for kind, operation in _operations()]


@parametrize_subtests(
    "destructive, row",
    [
        (False, "POST /books | createBook | Create a book"),
        (False, "POST /books | | Adds a book"),
        (False, "GET /#Action=CreateVolume | | Creates a volume"),
        (None, "POST /books"),
        (None, "POST /deletions | createDeletion | Create a deletion"),
        (None, "POST /books/{id}/revisions | createRestore | Create a restore of the book"),
        (None, "POST /keys | createKey | Create (or reset) a key"),
        (None, "POST /keys/rotate | createKey | Create a key"),
        (None, "POST /invoices/{id}/void | createInvoiceVoid"),
        (None, "PUT /invoices/{id}/void | voidInvoice"),
        (None, "POST /rides/{id}/cancel | cancelRide"),
        (None, "POST /rides/{id}/cancel | createRideCancel"),
        (None, "POST /rides/{id}:cancel | createCancel"),
        (None, "POST /tasks/{id}/fail | tasks_fail_create"),
        (None, "POST /books | createOrUpdateBook | Create or update a book"),
        (None, "POST /books | createBook | Creates a book, and replaces one of the same name"),
        (None, "PUT /books/{id} | | Create a book"),
        (None, "PATCH /books/{id} | | Add a page"),
        (True, "POST /keys/{id}/revoke | revokeKey"),
        (True, "POST /instances/{id}/terminate"),
        (True, "DELETE /books/{id} | | Create a hole"),
    ],
)
def test_that_nothing_is_destroyed_is_said_only_where_the_words_say_so(destructive: bool | None, row: str) -> None:
    address, name, summary = ([part.strip() for part in row.split("|")] + [""] * 2)[:3]
    method, path = address.split()
    hints = tool_annotations(effect_of(ApiOperation(method, path, "", name, summary)), method)
    assert hints.get("destructiveHint") is destructive


@parametrize_subtests(
    "idempotent, row",
    [
        (False, "PUT /carriers/{id}/add_funds | Add funds to a carrier"),
        (False, "PUT /carriers/{id}/add_funds"),
        (False, "PUT /counter/increment"),
        (False, "PUT /orders | Makes an order; each call makes a new one"),
        (False, "PUT /messages | Send a message"),
        (False, "PUT /payments/{id} | Charges the card"),
        (False, "PUT /invoices/{id} | Updates the invoice and sends it to the customer"),
        (False, "DELETE /queue/messages | Receive and delete the first message"),
        (False, "GET /tickets/{id}/refund | Refund a ticket"),
        (False, "PATCH /books/{id} | Update a book"),
        (True, "PUT /members/{id} | Add a member"),
        (True, "PUT /books/{id} | Replace a book"),
        (True, "PUT /settings/refund | Update the settings of refunds"),
        (True, "DELETE /books/{id} | Delete a book"),
        (True, "GET /messages | List the messages to send"),
    ],
)
def test_words_of_doing_it_once_more_overrule_the_method(idempotent: bool, row: str) -> None:
    address, _, summary = row.partition(" | ")
    method, path = address.split()
    operation = ApiOperation(method, path, "", "", summary)
    assert is_idempotent(effect_of(operation), method) is idempotent


def test_a_reading_method_that_changes_something_is_reported_unless_its_path_names_the_action() -> None:
    said = {
        "/books/{id}/remove": ApiOperation("GET", "/books/{id}/remove", "/paths/a", "removeBook"),
        "/#Action=DeleteBook": ApiOperation("GET", "/#Action=DeleteBook", "/paths/b", "GET_DeleteBook"),
        "/books": ApiOperation("GET", "/books", "/paths/c", "listBooks"),
    }
    api = Api("Books", operations=tuple(said.values()))
    described = make_api_tools(api, name_api(api, server="books"))
    assert [one.pointer for one in described.problems if one.code == "hints-doubtful"] == ["/paths/a"]
    assert [tool.annotations["readOnlyHint"] for tool in described.tools] == [False, False, True]


@parametrize_subtests(
    "expected, words",
    [
        (True, ("delete_book",)),
        (True, ("orderPizza",)),
        (True, ("books", "", "Deletes every book.")),
        (False, ("list_orders", "List orders")),
        (False, ("feed", "", "What there is to read.")),
        (False, ("echo", "Echo", "Returns what it is given.")),
    ],
)
def test_a_tool_may_sound_like_a_change(expected: bool, words: tuple[str, ...]) -> None:
    assert sounds_like_change(*words) is expected
